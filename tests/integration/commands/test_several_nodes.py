"""Commands over several nodes: named twice or with commas, by one that serves; what `doctor` says of the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from assay_ledger.chain.node import Anvil
from tests.harness.commands import assay, run_in_process
from tests.harness.providers import ProviderNode, Reply

NOBODY = "http://127.0.0.1:1"
ADDRESS = "0x" + "11" * 20


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        yield running


@pytest.mark.parametrize("form", ["twice", "commas"])
def test_a_command_uses_the_node_that_serves(monkeypatch: pytest.MonkeyPatch, node: Anvil, form: str) -> None:
    urls = ["--rpc-url", NOBODY, "--rpc-url", node.url] if form == "twice" else ["--rpc-url", f"{NOBODY},{node.url}"]
    done = assay(monkeypatch, "run", "show", "--run", ADDRESS, "--json", *urls)
    assert getattr(done.exception, "code", None) == "NotARun"


def test_doctor_names_the_node_that_does_not_serve(monkeypatch: pytest.MonkeyPatch, node: Anvil) -> None:
    assay(monkeypatch, "config", "show")
    with ProviderNode(node.url) as limited:
        limited.turn(Reply(b"", 429))
        environment = {"ETH_RPC_URL": f"{node.url},{limited.url}/v3/0123456789abcdef", "ASSAY_CONFIG": "/dev/null"}
        done = run_in_process(["doctor", "--json"], environment)
    (found,) = [finding for finding in json.loads(done.stdout) if finding["name"] == "chain"]
    assert found["state"] == "broken" and f"{limited.url}/... (HTTP 429)" in found["found"]
    assert node.url not in found["found"] and "0123456789abcdef" not in done.stdout


def test_no_password_of_a_url_is_shown_among_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assay(monkeypatch, "config", "show")
    environment = {
        "ASSAY_INDEX_URL": "postgresql://keeper:o%40pen-sesame@db.example:5432/events",
        "ETH_RPC_URL": f"{NOBODY},http://user:open-sesame-too@node.example/v3",
        "ASSAY_CONFIG": "/dev/null",
    }
    for words in (["config", "show"], ["config", "show", "--json"]):
        done = run_in_process(words, environment | {"COLUMNS": "300"})
        assert done.exit_code == 0 and "sesame" not in done.stdout and "keeper" not in done.stdout
    shown = json.loads(done.stdout)["settings"]
    assert shown["index_url"]["value"] == "postgresql://***@db.example:5432/events"
    assert shown["rpc_url"]["value"] == f"{NOBODY},http://***@node.example/v3"


def test_doctor_is_content_when_all_nodes_serve(monkeypatch: pytest.MonkeyPatch, node: Anvil) -> None:
    assay(monkeypatch, "config", "show")
    with ProviderNode(node.url) as second:
        environment = {"ETH_RPC_URL": f"{node.url},{second.url}", "ASSAY_CONFIG": "/dev/null"}
        done = run_in_process(["doctor", "--json"], environment)
    (found,) = [finding for finding in json.loads(done.stdout) if finding["name"] == "chain"]
    assert found["state"] == "ok" and node.url in found["found"] and second.url in found["found"]
