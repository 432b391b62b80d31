"""What `make release-check` holds a release to, but for building and installing it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 0.3.0 - 2026-12-01\n\nNotes.\n\n## 0.2.0 - 2026-11-27\n"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_release_check", ROOT / "tools" / "release_check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_project_says_one_version(tool: ModuleType) -> None:
    assert tool.version_of((ROOT / "pyproject.toml").read_text(), (ROOT / "CHANGELOG.md").read_text())


def project(version: str) -> str:
    return f'[project]\nname = "assay"\nversion = "{version}"\n'


def test_the_newest_release_of_the_changelog_is_the_version(tool: ModuleType) -> None:
    assert tool.version_of(project("0.3.0"), CHANGELOG) == "0.3.0"


@pytest.mark.parametrize(
    ("version", "changelog", "said"),
    [
        ("0.2.0", CHANGELOG, "is 0.3.0"),
        ("0.2.0", "# Changelog\n\n## Unreleased\n", "is none"),
        ("0.2.0", "## 0.2.0 - 2026-13-01\n", "month"),
        ("0.2.0", "## 0.2.0\n", "is none"),
    ],
    ids=["older", "none", "no-date", "undated"],
)
def test_a_version_that_the_changelog_does_not_date_is_refused(
    tool: ModuleType, version: str, changelog: str, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        tool.version_of(project(version), changelog)


def test_uv_looks_where_pip_looks(tool: ModuleType) -> None:
    configured = "\n".join(
        [
            ":env:.find-links='/wheels /more'",
            "global.index-url='https://one.example/simple'",
            "global.extra-index-url='https://two.example/simple\\nhttps://three.example/simple'",
            "global.timeout='180'",
            ":env:.cert='/roots.pem'",
        ]
    )
    assert tool.pip_sources(configured) == {
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_DEFAULT_INDEX": "https://one.example/simple",
        "UV_INDEX": "https://two.example/simple https://three.example/simple",
        "SSL_CERT_FILE": "/roots.pem",
    }
    assert tool.pip_sources("") == {}


def test_a_wheel_without_contracts_is_no_release_and_one_without_anvil_is(tool: ModuleType) -> None:
    findings = [{"name": name, "state": "broken", "found": "none"} for name in ("contracts", "anvil")]
    assert tool.broken([*findings, {"name": "torch", "state": "ok", "found": "2.11"}]) == {"contracts": "none"}
