"""Cards and names in a store that anybody may write to: what is listed and printed is taken for words only."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.cli.common import print_table
from assay.protocol.types import Address
from assay.sponsor.cards import listed_runs
from assay_ledger.store.blobs import open_store

RUN = Address(b"\x07" * 20)


def test_names_that_are_no_runs_are_passed_over(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for name in ("runs", "runs/x", "runs/x/card", f"runs/{RUN.hex()}", f"runs/{RUN.hex()}/card/more", "runs/07/card"):
        store.put(b"junk", name)
    assert listed_runs(store) == []
    for body in (b"one", b"two"):
        store.put(body, f"runs/{RUN.hex()}/card")
    assert listed_runs(store) == [RUN]


@pytest.mark.parametrize("words", ["[/]", "[/bold]", "[red]x[/red]", "[link=http://x]y", "\\[x"])
def test_a_strangers_words_in_a_table_are_printed_as_they_are(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ["model"], [[words]])
    assert words in capsys.readouterr().out
