"""Tables of faults: what an entry must hold, when it applies, and what the check of the documents says of it."""

import sys
from pathlib import Path

import pytest

from tools import check_docs, mutants
from tools.mutant_tables import TableError, read_mutants

ENTRY = """
[drops-the-bound]
what = 'the bound is not looked at'
test = 'tests/house/test_mutant_tables.py::test_a_fault_replaces_its_text'
file = 'source.py'
find = '''
    if x > 3:
        raise ValueError
'''
replace = ''
"""
SOURCE = "def f(x):\n    if x > 3:\n        raise ValueError\n    return x\n"


def written(folder: Path, text: str, area: str = "area") -> Path:
    tables = folder / "mutants"
    tables.mkdir(exist_ok=True)
    (tables / f"{area}.toml").write_text(text)
    return tables


def test_a_fault_replaces_its_text(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(SOURCE)
    (mutant,) = read_mutants(written(tmp_path, ENTRY))
    assert (mutant.name, mutant.area, mutant.is_forge) == ("drops-the-bound", "area", False)
    assert mutant.faulty(tmp_path) == "def f(x):\n    return x\n"


def test_a_fault_may_change_two_places(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(SOURCE)
    second = "\n[[drops-the-bound.also]]\nfind = 'return x'\nreplace = 'return x + 1'\n"
    (mutant,) = read_mutants(written(tmp_path, ENTRY + second))
    assert mutant.faulty(tmp_path) == "def f(x):\n    return x + 1\n"


@pytest.mark.parametrize(("source", "message"), [("def f(x):\n", "0 times"), (SOURCE * 2, "2 times")])
def test_a_fault_applies_only_where_its_text_stands_once(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "source.py").write_text(source)
    (mutant,) = read_mutants(written(tmp_path, ENTRY))
    with pytest.raises(TableError, match=rf"drops-the-bound: source\.py holds the text to find {message}"):
        mutant.faulty(tmp_path)


def test_a_fault_in_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    (mutant,) = read_mutants(written(tmp_path, ENTRY))
    with pytest.raises(TableError, match=r"source\.py does not exist"):
        mutant.faulty(tmp_path)


def test_a_name_stands_in_one_table_only(tmp_path: Path) -> None:
    written(tmp_path, ENTRY, "other")
    with pytest.raises(TableError, match=r"drops-the-bound: stands in area\.toml and in other\.toml"):
        read_mutants(written(tmp_path, ENTRY))
    (tmp_path / "mutants" / "other.toml").unlink()
    with pytest.raises(TableError, match=r"area\.toml: Cannot declare"):
        read_mutants(written(tmp_path, ENTRY * 2))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("what = ", "why = ", "must have the texts"),
        ("file = 'source.py'\n", "", "must have the texts"),
        ("what = ", "forge = '--match-test x'\nwhat = ", "must have the texts"),
        ("replace = ''", "replace = 0", "must have the texts"),
        ("find = '''\n    if x > 3:\n        raise ValueError\n'''", "find = ''", "must hold text"),
        ("replace = ''", "replace = ''\nred = 'some day'", "`red` is one of call, collection"),
        ("[drops-the-bound]", "[Drops_the_bound]", "small letters"),
        ("its_text'", "its_text -k \"a and'", "cannot be read as arguments"),
        ("replace = ''", "replace = ''\nalso = [{find = 'x'}]", "must have find and replace"),
        ("[drops-the-bound]", "stray = 1\n[drops-the-bound]", "outside any fault"),
    ],
)
def test_an_entry_of_another_form_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert ENTRY.count(old) == 1
    with pytest.raises(TableError, match=message):
        read_mutants(written(tmp_path, ENTRY.replace(old, new)))


def test_a_patch_among_the_tables_is_refused(tmp_path: Path) -> None:
    tables = written(tmp_path, ENTRY)
    (tables / "README.md").write_text("how to read them")
    assert len(read_mutants(tables)) == 1
    (tables / "old.patch").write_text("diff --git a/x b/x")
    with pytest.raises(TableError, match=r"old\.patch: is no table"):
        read_mutants(tables)


def test_documents_must_have_a_row_for_each_fault_and_no_other() -> None:
    page = (check_docs.ROOT / "docs" / "mutants.md").read_text()
    assert check_docs.check_mutants(page) == []
    row = read_mutants()[0].row()
    assert page.count(row) == 1
    (gone,) = check_docs.check_mutants(page.replace(row, ""))
    assert "has no row" in gone
    (twice,) = check_docs.check_mutants(page.replace(row, row * 2))
    assert "row twice" in twice
    assert len(check_docs.check_mutants(page.replace(row, row.replace(" |", " too |", 1)))) == 2


def test_a_fault_whose_text_test_or_file_is_gone_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = ENTRY.replace("source.py", "tools/mutants.py").replace("::test_a_fault_replaces_its_text", "::test_gone")
    (mutant,) = read_mutants(written(tmp_path, changed))
    monkeypatch.setattr(check_docs, "read_mutants", lambda: [mutant])
    test, text = check_docs.check_mutants(mutant.row())
    assert "test_gone, which does not exist" in test
    assert "holds the text to find 0 times" in text


def test_a_forge_fault_is_judged_by_forge_and_any_other_by_pytest(tmp_path: Path) -> None:
    (python,) = read_mutants(written(tmp_path, ENTRY))
    (forge,) = read_mutants(written(tmp_path, ENTRY.replace("test = ", "forge = ")))
    assert mutants.command(python)[:3] == [sys.executable, "-m", "pytest"]
    assert mutants.command(forge)[1:3] == ["tools/forge.py", "test"]
