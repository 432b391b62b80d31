"""The checks of the gate can fail: each finds what it is there to find, and nothing in clean text."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "text",
    [
        "see /ho" + "me/ann/assay",
        "cp x /tm" + "p/out",
        "--index-url https://py" + "pi.org/simple",
        '"resolved": "https://registry.npm' + 'js.org/x.tgz"',
        "http://192" + ".168.1.4/simple",
        "-----BEGIN " + "PRIVATE KEY-----",
        "file:" + "///somewhere",
    ],
)
def test_a_leak_is_found(text: str) -> None:
    assert tool("check_leaks").find(text)


def test_clean_text_has_no_leak() -> None:
    assert tool("check_leaks").find("See docs/work/plan.md, $TMPDIR/tmp and https://www.apache.org/licenses.\n") == []


def test_a_dead_link_or_anchor_is_found(tmp_path: Path) -> None:
    docs = tool("check_docs")
    page = tmp_path / "page.md"
    page.write_text("# One heading\n")
    assert docs.check_links(page, "[a](page.md#one-heading) [b](https://example.org) [c](#one-heading)") == []
    assert len(docs.check_links(page, "[a](gone.md) [b](page.md#two)")) == 2


def test_a_stale_block_is_found_and_renewed() -> None:
    docs = tool("check_docs")
    stale = "<!-- exit-codes -->\nold\n<!-- /exit-codes -->"
    fresh = docs.renew(stale)
    assert fresh != stale
    assert "| 130 | interrupted |" in fresh
    assert docs.renew(fresh) == fresh


def test_a_named_test_that_does_not_exist_is_found() -> None:
    docs = tool("check_docs")
    here = "tests/tools/test_checks.py::"
    assert (
        docs.check_tests(f"see `{here}test_a_leak_is_found`, `contracts/test/Test.t.sol::test_bound_stays_inside`")
        == []
    )
    assert len(docs.check_tests(f"see `{here}test_a_leak` and `tests/none.py::test_a_leak_is_found`")) == 2


def test_an_unsorted_or_doubled_glossary_word_is_found() -> None:
    docs = tool("check_docs")
    assert docs.check_glossary("| **a** | x |\n| **b** | y |\n") == []
    assert docs.check_glossary("| **b** | x |\n| **a** | y |\n")
    assert docs.check_glossary("| **a** | x |\n| **a** | y |\n")


def test_a_make_target_that_does_not_exist_is_found() -> None:
    assert tool("check_docs").check_targets("run `make nothing`", {"check"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("torch==2.13.0 \\\n    --hash=sha256:00\n", "torch"),
        ("a==1\n", "no hash"),
        ("a @ https://x.example/a.whl --hash=sha256:00\n", "no host"),
    ],
)
def test_a_bad_lock_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        tool("lock").tidy(text)


def test_the_lock_in_the_tree_is_as_the_tool_writes_it() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert tool("lock").tidy(text) == text


def test_the_compiler_shim_speaks_what_forge_asks_for() -> None:
    def solc(*argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([ROOT / "tools" / "solc", *argv], input=stdin, capture_output=True, text=True, timeout=60)

    assert "Version: 0.8." in solc("--version").stdout
    assert '"errors"' in solc("--standard-json", stdin='{"language": "Solidity", "sources": {}}').stdout
    assert solc("--bin").returncode == 2
