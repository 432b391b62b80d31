"""A cached program is taken only where it is what this user wrote under that name; else it is made again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from assay.engine.compiler import cache
from assay.engine.compiler.cache import cached_program
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType


def of(width: int) -> Program:
    """The exponents of rows of this width."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (2, width))]])
    return b.build([[b.rowexp(b.input(0, 0), 1)]])


@pytest.fixture(autouse=True)
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    return cache.cache_folder()


def kept(width: int) -> Program | None:
    """What the cache gives under the name of a program; None where it would be made again."""
    made: list[Program] = []

    def make() -> Program:
        made.append(of(width))
        return made[0]

    found = cached_program({"width": width}, make)
    return None if made else found


def other_program(entry: Path, entries: Path) -> None:
    other = next(p for p in entries.iterdir() if p != entry)
    entry.write_bytes(other.read_bytes())


def flipped(entry: Path, _: Path) -> None:
    data = bytearray(entry.read_bytes())
    data[-3] ^= 1
    entry.write_bytes(data)


SPOILT: dict[str, Callable[[Path, Path], object]] = {
    "cut off": lambda entry, _: entry.write_bytes(entry.read_bytes()[:-5]),
    "empty": lambda entry, _: entry.write_bytes(b""),
    "a bit flipped": flipped,
    "another entry's bytes": other_program,
    "writable by others": lambda entry, _: entry.chmod(0o666),
    "writable by the group": lambda entry, _: entry.chmod(0o620),
}


@pytest.mark.parametrize("how", SPOILT)
def test_an_entry_that_is_not_what_was_written_is_made_again(how: str, entries: Path):
    assert kept(3) is None
    (entry,) = entries.iterdir()
    assert kept(5) is None
    assert kept(3) == of(3)
    SPOILT[how](entry, entries)
    assert kept(3) is None
    assert kept(3) == of(3)


def test_an_entry_of_another_user_is_made_again(monkeypatch: pytest.MonkeyPatch):
    assert kept(3) is None
    user = cache.os.getuid()
    monkeypatch.setattr(cache.os, "getuid", lambda: user + 1)
    assert kept(3) is None


def test_the_code_of_the_models_that_are_captured_by_name_is_part_of_the_name(monkeypatch: pytest.MonkeyPatch):
    """A bench's model is named, not described: its code may change while its shapes do not."""
    before = cache.source_digest()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda p: read(p) + b"#" * p.as_posix().endswith("bench/models.py"))
    assert cache.source_digest.__wrapped__() != before
