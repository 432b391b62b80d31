"""The checks of the gate can fail: each finds what it is there to find, and nothing in clean text."""

import importlib.util
import re
import subprocess
import sys
from collections import Counter
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
    here = "tests/house/test_checks.py::"
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


def test_a_rule_that_is_numbered_twice_or_of_a_group_that_nobody_looks_up_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tool("check_docs")
    pages, page = docs.protocol_pages(), tmp_path / "page.md"
    monkeypatch.setattr(docs, "protocol_pages", lambda: [*pages, page])
    known, other = "AN-" + "90", "ZZ-" + "1"
    page.write_text(f"- **{known}** Once.\n")
    assert docs.check_rules() == []
    page.write_text(f"- **{known}** Once.\n- **{known}** Again.\n- **{other}** Of a group of its own.\n")
    assert [line.split(" ")[1] for line in docs.check_rules()] == [known, other]


LONG = "word " * 19 + "words"


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (LONG, False),
        (LONG + "x", True),
        (f"- {LONG}", True),
        (f"1. `{LONG}`", False),
        (f"| {LONG} |", False),
        (f"```\n{LONG}x\n```", False),
        (f"```\n```\n{LONG}x", True),
        (f"see `{LONG}`", True),
        (f"[here](https://{'x' * 100})", False),
        (f"- see [here](https://{'x' * 100})", True),
    ],
)
def test_a_long_line_of_prose_is_found_and_tables_code_and_links_are_not(
    tmp_path: Path, text: str, is_found: bool
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A heading {LONG}\n\n{text}\n")
    assert bool(tool("check_layout").long_lines([page])) is is_found


def test_a_make_target_that_does_not_exist_is_found() -> None:
    assert tool("check_docs").check_targets("run `make nothing`", {"check"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("torch==2.13.0 \\\n    --hash=sha256:00\n", "torch"),
        ("nvidia-cublas==13.1 \\\n    --hash=sha256:00\n", "nvidia"),
        ("a==1\n", "no hash"),
        ("a @ https://x.example/a.whl --hash=sha256:00\n", "no host"),
    ],
)
def test_a_bad_lock_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        tool("lock").tidy(text, ["requirements.in"])


def test_torch_and_its_cuda_libraries_are_taken_out_of_the_lock_for_models() -> None:
    kept = "timm==1.0 \\\n    --hash=sha256:00\ntorch-geometric==2.8 \\\n    --hash=sha256:01\n"
    torchs = "torch==2.13.0 \\\n    --hash=sha256:02\nnvidia-nccl-cu13==2 \\\n    --hash=sha256:03\n"
    assert tool("lock").without_torch(torchs + kept + "triton==3.7 \\\n    --hash=sha256:04\n") == kept


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-slither.lock", "requirements-models.lock"])
def test_a_lock_in_the_tree_is_as_the_tool_writes_it(name: str) -> None:
    lock, text = tool("lock"), (ROOT / name).read_text()
    assert lock.tidy(text, lock.LOCKS[name]) == text


FOUND = Counter({("timestamp", "Vault.withdraw"): 1, ("calls-loop", "Seats.join"): 2})


@pytest.mark.parametrize(
    ("known", "wrong"),
    [
        ({("timestamp", "Vault.withdraw"): (1, "why"), ("calls-loop", "Seats.join"): (2, "why")}, []),
        ({("timestamp", "Vault.withdraw"): (1, "why")}, ["calls-loop in Seats.join: 2 found, 0 explained"]),
        (
            {("timestamp", "Vault.withdraw"): (1, ""), ("calls-loop", "Seats.join"): (3, "why")},
            [
                "calls-loop in Seats.join: 3 explained, 2 found: the explanation is stale",
                "timestamp in Vault.withdraw has no reason",
            ],
        ),
    ],
    ids=["all explained", "a new finding", "a stale line and an empty one"],
)
def test_findings_and_explanations_are_held_to_each_other(
    known: dict[tuple[str, str], tuple[int, str]], wrong: list[str]
) -> None:
    assert tool("slither").differences(FOUND, known) == wrong


def test_a_finding_is_named_without_line_numbers() -> None:
    contract = {"type": "contract", "name": "Vault"}
    function = {"type": "function", "name": "withdraw", "type_specific_fields": {"parent": contract}}
    node = {"type": "node", "name": "x <= y", "type_specific_fields": {"parent": function}}
    assert tool("slither").place_of([node, contract]) == "Vault.withdraw"


def test_every_explanation_has_a_reason_and_names_what_its_contract_still_has() -> None:
    """A row whose function was renamed is stale before slither, which the gate does not run, is asked."""
    declared = re.compile(r"^(?:abstract )?(?:contract|library|interface) (\w+)", re.MULTILINE)
    texts = {path: path.read_text() for path in (ROOT / "contracts").rglob("*.sol")}
    contracts = {name: text for text in texts.values() for name in declared.findall(text)}
    known = tool("slither").explained()
    assert known
    for (_, place), (count, why) in known.items():
        contract, *names = place.split(".")
        assert count and why
        assert contract in contracts
        for name in names:
            assert name == "slitherConstructorConstantVariables" or re.search(rf"\b{name}\b", contracts[contract]), (
                place
            )


def test_the_compiler_shim_speaks_what_forge_asks_for() -> None:
    def solc(*argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([ROOT / "tools" / "solc", *argv], input=stdin, capture_output=True, text=True, timeout=60)

    assert "Version: 0.8." in solc("--version").stdout
    assert '"errors"' in solc("--standard-json", stdin='{"language": "Solidity", "sources": {}}').stdout
    assert solc("--bin").returncode == 2


@pytest.mark.parametrize("line", ["def {}(x) -> None:", "    async def {}():", "    function {}(uint256 a) public {{"])
def test_a_tests_name_above_80_characters_is_found(tmp_path: Path, line: str) -> None:
    path = tmp_path / "test_names.txt"
    path.write_text(line.format("test_" + "x" * 75))
    assert tool("check_layout").long_names([path]) == []
    path.write_text(line.format("test_" + "x" * 76))
    (message,) = tool("check_layout").long_names([path])
    assert "has 81 characters" in message


EXPLAINED = """
    /// @notice The amount is too large.
    /// @dev It could overflow,
    /// far away.
    /// @custom:remedy Name a smaller one.
    /// @param amount in wei
    /// @param most in wei
    error TooLarge(
        uint256 amount,
        uint256 most
    );

    /// @notice Money came in.
    /// @param amount in wei
    event Paid(uint256 indexed amount);
"""


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        ("nothing", []),
        ("@notice The amount", ["error TooLarge has no @notice"]),
        ("@custom:remedy", ["error TooLarge has no @custom:remedy"]),
        ("@param most", ["error TooLarge has no @param most"]),
        ("@notice Money", ["event Paid has no @notice"]),
        (
            "///",
            ["no @notice", "no @custom:remedy", "no @param amount", "no @param most", "no @notice", "no @param amount"],
        ),
    ],
)
def test_an_error_or_event_that_does_not_explain_itself_is_found(without: str, missing: list[str]) -> None:
    lines = [line for line in EXPLAINED.splitlines() if without not in line]
    found = tool("check_layout").natspec_missing({"A.sol": "\n".join(lines)})
    assert len(found) == len(missing)
    assert all(complaint.endswith(end) for complaint, end in zip(found, missing, strict=True))


def test_every_error_and_event_of_the_contracts_explains_itself() -> None:
    assert tool("check_layout").natspec_missing() == []
