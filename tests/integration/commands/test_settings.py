"""Settings: default < file < environment < flag, and nothing is ignored silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.errors import ConfigError
from assay.settings import ENVIRONMENT, Settings, resolve


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("ASSAY_CONFIG", str(path))
    return path


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(config: Path) -> None:
    assert resolve(environment={}).sources["rpc_url"] == "default"
    config.write_text('rpc_url = "http://file"\nstore = "file-store"\n')
    found = resolve(environment={})
    assert (found.settings.rpc_url, found.sources["rpc_url"]) == ("http://file", f"file {config}")
    environment = {"ETH_RPC_URL": "http://environment"}
    found = resolve(environment=environment)
    assert (found.settings.rpc_url, found.settings.store) == ("http://environment", "file-store")
    found = resolve({"rpc_url": "http://flag", "store": None}, environment)
    assert (found.settings.rpc_url, found.sources["rpc_url"]) == ("http://flag", "flag")
    assert found.settings.store == "file-store"


@pytest.mark.parametrize("text", ['rpc_ulr = "http://x"', 'run = "0x12"', "keys_dir = 5"])
def test_a_misspelt_or_malformed_setting_is_named_and_refused(config: Path, text: str) -> None:
    config.write_text(text)
    with pytest.raises(ConfigError) as caught:
        resolve(environment={})
    assert caught.value.code == "ConfigInvalid"
    assert text.split(" ")[0] in caught.value.message


@pytest.mark.parametrize("content", [b"\xff\xfe", b"rpc_url = "])
def test_a_file_that_is_no_toml_is_refused(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        resolve(environment={})
    assert caught.value.code == "ConfigUnreadable"


def test_every_setting_has_a_variable_of_its_own() -> None:
    assert set(ENVIRONMENT) == set(Settings.model_fields)
    assert len(set(ENVIRONMENT.values())) == len(ENVIRONMENT)
