"""Fails when the documents no longer say what the project does.

Checked: links and anchors in every Markdown file resolve; a block between `<!-- help: COMMAND -->` and `<!-- /help -->`
equals what the command prints (`--write` rewrites the blocks); the table between `<!-- exit-codes -->` marks equals
assay/protocol/errors.py, the diagram between `<!-- game-diagram -->` marks assay/protocol/game/table.py, a table
between `<!-- table: NAME -->` marks that of tools/doc_tables.py, one between `<!-- function-errors -->` marks
docs/functions.json, measured on the functions' code of today, one between `<!-- snapshot: NAME -->` marks
docs/snapshots/NAME.json; every `make` target that a document names exists, and every test that one names as
`path::name`; each fault of tests/mutants applies, names a test that exists and has its row in docs/mutants.md; the
glossary is sorted and explains no word twice; every ADR starts with its number and states a status; the pages of the
protocol number no rule twice, and every rule that a document, a source or a test cites is there.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from assay.bench import function_table, snapshot_table
from assay.protocol.errors import ExitCode
from assay.protocol.game.table import to_mermaid
from tools.doc_tables import TABLES
from tools.mutant_tables import TableError, read_mutants

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HELP = re.compile(r"(<!-- help: (.+?) -->\n)(.*?)(<!-- /help -->)", re.DOTALL)
DIAGRAM = re.compile(r"(<!-- game-diagram -->\n)(.*?)(<!-- /game-diagram -->)", re.DOTALL)
CODES = re.compile(r"(<!-- exit-codes -->\n)(.*?)(<!-- /exit-codes -->)", re.DOTALL)
ERRORS = re.compile(r"(<!-- function-errors -->\n)(.*?)(<!-- /function-errors -->)", re.DOTALL)
SNAPSHOT = re.compile(r"(<!-- snapshot: (.+?) -->\n)(.*?)(<!-- /snapshot -->)", re.DOTALL)
TABLE = re.compile(r"(<!-- table: (.+?) -->\n)(.*?)(<!-- /table -->)", re.DOTALL)
MAKE = re.compile(r"`make ([a-z][a-z-]*)")
GROUPS = "AR|SM|TR|ENC|HDR|FILE|MAL|WF|EL|ST|CL|GM|OPEN|CK|TM|SE|WK|BE|TI|CM|GN|EP|DU|AT|MO|STO|CH|WT|AN"
RULE = re.compile(rf"\b(?:{GROUPS})-[1-9]\d*\b")
RULE_LINE = re.compile(r"^- \*\*([A-Z]+-[1-9]\d*)\*\* ", re.MULTILINE)
CITING = ("assay", "contracts", "ledger", "solver", "verifier", "whistleblower", "tools", "tests")
TEST = re.compile(r"`([\w./-]+\.(?:py|sol))::(\w+)`")


def documents() -> list[Path]:
    """Every Markdown file of the project, tracked or new."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return [ROOT / name for name in sorted(set(names.split("\0"))) if name and (ROOT / name).is_file()]


def anchors(text: str) -> set[str]:
    """The anchors that Markdown viewers give to headings."""
    headings = re.findall(r"^#{1,6} +(.+?) *$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(path: Path, text: str) -> list[str]:
    """Relative links must name a file, and an anchor one of its headings."""
    wrong = []
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists():
            wrong.append(f"link to {target}, which does not exist")
        elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text(encoding="utf-8")):
            wrong.append(f"link to {target}, but no heading gives that anchor")
    return wrong


def help_text(command: str) -> str:
    """What `command --help` prints, as a fenced block 100 columns wide without colour."""
    words = command.split()
    program = Path(sys.executable).parent / words[0]
    env = os.environ | {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run([program, *words[1:], "--help"], env=env, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise ValueError(f"`{command} --help` ends with exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    return "```\n" + "\n".join(lines) + "\n```\n"


def exit_code_table() -> str:
    """The exit codes as a Markdown table."""
    rows = "".join(f"| {int(code)} | {code.meaning} |\n" for code in ExitCode)
    return "| code | meaning |\n|---|---|\n" + rows


def renew(text: str) -> str:
    """`text` with every generated block as it should be."""
    text = HELP.sub(lambda m: m[1] + help_text(m[2]) + m[4], text)
    text = DIAGRAM.sub(lambda m: m[1] + "```mermaid\n" + to_mermaid() + "```\n" + m[3], text)
    text = ERRORS.sub(lambda m: m[1] + function_table.table() + m[3], text)
    text = SNAPSHOT.sub(lambda m: m[1] + snapshot_table.table(m[2]) + m[4], text)
    text = TABLE.sub(lambda m: m[1] + TABLES[m[2]]() + m[4], text)
    return CODES.sub(lambda m: m[1] + exit_code_table() + m[3], text)


def check_targets(text: str, targets: set[str]) -> list[str]:
    """A `make` target that a document names must exist."""
    return [f"names `make {name}`, which does not exist" for name in MAKE.findall(text) if name not in targets]


def check_tests(text: str) -> list[str]:
    """A test that a document names as `path::name` must be in that file."""
    wrong = []
    for name, test in TEST.findall(text):
        path = ROOT / name
        if not path.is_file():
            wrong.append(f"names a test in {name}, which does not exist")
        elif not re.search(rf"^\s*(?:def|function) {test}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            wrong.append(f"names {name}::{test}, which does not exist")
    return wrong


def check_mutants(page: str) -> list[str]:
    """Every checked-in fault applies, its test exists, and `page` has its row: docs/mutants.md, what was caught."""
    try:
        mutants = read_mutants()
    except TableError as error:
        return [str(error)]
    rows = [line for line in page.splitlines(keepends=True) if line.endswith("` |\n")]
    stale = sorted(set(rows) - {mutant.row() for mutant in mutants})
    wrong = [f"says what no table in tests/mutants says: {row.strip()}" for row in stale]
    wrong += [f"has a row twice: {row.strip()}" for row in sorted(set(rows)) if rows.count(row) > 1]
    for mutant in mutants:
        if mutant.row() not in rows:
            wrong.append(f"has no row for {mutant.name}: run `make mutants ARGS={mutant.name}`")
        named = re.findall(r"[\w./-]+\.(?:py|sol)(?:::\w+)?", mutant.test)
        found = check_tests(" ".join(f"`{name}`" for name in named if "::" in name)) if named else ["names no test"]
        found += [f"{name} does not exist" for name in named if not (ROOT / name.split("::")[0]).is_file()]
        wrong += [f"{mutant.name}: {what}" for what in found]
        try:
            mutant.faulty(ROOT)
        except TableError as error:
            wrong.append(str(error))
    return wrong


def check_glossary(text: str) -> list[str]:
    """Words are unique and sorted, so that one idea has one word and it can be found."""
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", text, re.MULTILINE)
    wrong = [] if words == sorted(words, key=str.lower) else ["the glossary's words are not sorted"]
    return wrong + [f"the glossary explains {word} twice" for word in sorted(set(words)) if words.count(word) > 1]


def check_adr(path: Path, text: str) -> list[str]:
    """An ADR starts with its number and title and says whether it holds."""
    number = path.name[:4]
    wrong = [] if re.match(rf"# (?:ADR )?0*{int(number)}\b", text) else [f"does not start with `# {number}`"]
    return wrong + ([] if re.search(r"^\W*status", text, re.MULTILINE | re.IGNORECASE) else ["says no status"])


def protocol_pages() -> list[Path]:
    """The normative pages."""
    return [ROOT / "docs" / "protocol.md", *sorted((ROOT / "docs" / "protocol").glob("*.md"))]


def rules() -> list[str]:
    """The numbers of all rules, in the order of the pages."""
    return [number for page in protocol_pages() for number in RULE_LINE.findall(page.read_text(encoding="utf-8"))]


def check_rules() -> list[str]:
    """No rule is defined twice or of a group whose citations are not read, and every rule that is cited is there."""
    known = rules()
    wrong = [f"docs/protocol: {number} is defined twice" for number in sorted(set(known)) if known.count(number) > 1]
    wrong += [f"docs/protocol: {number} is of no group of this check" for number in known if not RULE.fullmatch(number)]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *CITING]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    sources = [ROOT / name for name in sorted(set(names)) if name.endswith((".py", ".sol", ".mjs", ".c", ".h"))]
    for path in [*documents(), *(s for s in sources if s.is_file() and not s.is_symlink())]:
        unknown = set(RULE.findall(path.read_text(encoding="utf-8"))) - set(known)
        wrong += [f"{path.relative_to(ROOT)}: cites {number}, which no page defines" for number in sorted(unknown)]
    return wrong


def main(argv: list[str]) -> int:
    """Check (or with --write, renew) every document; 0 when all is in order."""
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    count = 0
    for path in documents():
        text = path.read_text(encoding="utf-8")
        wrong = check_links(path, text) + check_targets(text, targets) + check_tests(text)
        try:
            fresh = renew(text)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            wrong.append(str(error))
        else:
            if fresh != text and "--write" in argv:
                path.write_text(fresh, encoding="utf-8")
            elif fresh != text:
                wrong.append("a generated block is stale: run `make docs`")
        if ERRORS.search(text):
            wrong += function_table.stale()
        if path.name == "mutants.md":
            wrong += check_mutants(text)
        if path.name == "glossary.md":
            wrong += check_glossary(text)
        if path.parent.name == "adr" and path.name[:4].isdigit():
            wrong += check_adr(path, text)
        for what in wrong:
            print(f"{path.relative_to(ROOT)}: {what}")
        count += len(wrong)
    for what in check_rules():
        print(what)
        count += 1
    print(f"docs check: {count} found")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
