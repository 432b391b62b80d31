"""What lies in deploy: a service file that is read, rules that promtool takes, and no metric that does not exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from assay.observing import names
from assay.service.config import RoleEntry, ServiceFile, arguments_of, read_service_file

DEPLOY = Path(__file__).parents[2] / "deploy"
NAMED = re.compile(r"\bassay_[a-z_]+\b")


def shown() -> set[str]:
    """Every series that a process can show."""
    found = set()
    for metric in names.ALL:
        ends = ("_bucket", "_count", "_sum") if metric.kind == "histogram" else ("",)
        found |= {metric.name + end for end in ends}
    return found


@pytest.mark.parametrize("path", ["grafana/dashboard.json", "prometheus/alerts.yml", "prometheus/alerts_test.yml"])
def test_every_metric_that_is_named_exists(path: str) -> None:
    named = set(NAMED.findall((DEPLOY / path).read_text()))
    assert named and named <= shown(), named - shown()


def test_the_dashboard_shows_every_metric_and_each_panel_has_a_place_of_its_own() -> None:
    dashboard = json.loads((DEPLOY / "grafana/dashboard.json").read_text())
    used = set(NAMED.findall(json.dumps(dashboard)))
    assert {metric.name for metric in names.ALL} <= {re.sub("_(bucket|count|sum)$", "", name) for name in used}
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)


def test_the_document_for_operators_names_every_metric() -> None:
    text = (DEPLOY.parent / "docs/operating.md").read_text()
    assert [metric.name for metric in names.ALL if metric.name not in text] == []


def test_promtool_takes_the_rules_and_they_raise_what_they_should() -> None:
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool (Debian's prometheus) is not installed")
    folder = DEPLOY / "prometheus"
    for words in ("check rules alerts.yml", "check config prometheus.yml", "test rules alerts_test.yml"):
        done = subprocess.run([promtool, *words.split()], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_of_a_service_is_read_and_scraped_as_it_stands() -> None:
    file = read_service_file(DEPLOY / "service.toml")
    assert [arguments_of(entry)[0] for entry in file.roles] == ["solver", "verifier", "service"]
    places = {file.status, *(entry.metrics for entry in file.roles)}
    scraped = (DEPLOY / "prometheus/prometheus.yml").read_text()
    assert all(place is not None and f'"{place}"' in scraped for place in places)
    secrets = {entry.password_credential for entry in file.roles if entry.password_credential}
    compose = (DEPLOY / "compose.yaml").read_text()
    assert all(f"./secrets/{secret}" in compose for secret in secrets)
    # After a reboot an engine starts again what it stopped in order, and on-failure leaves that down.
    assert re.findall(r"^ *restart: (.*)$", compose, re.MULTILINE) == ["unless-stopped"]


def test_the_example_names_every_key_of_a_service() -> None:
    text = (DEPLOY / "service.toml").read_text()
    keys = {*ServiceFile.model_fields, *RoleEntry.model_fields} - {"common", "roles"}
    assert [key for key in sorted(keys) if re.search(rf"\b{key}\b", text) is None] == []


def test_the_image_compiles_the_contracts_that_its_package_takes_along() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    steps = ["tools/forge.py build", "COPY . .", "COPY --from=contracts", "pip install --no-cache-dir --no-deps --no-b"]
    places = [text.index(step) for step in [*steps, "assay explain EscrowShort"]]
    assert places == sorted(places)
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE)]
    assert all((DEPLOY.parent / name).exists() for names in copied for name in names)
