"""Programs that several threads of a gateway ask for at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assay.inference.programs import prompt_program, window_program
from tests.harness.inference.models import SHAPE


def test_programs_that_are_asked_for_at_once_are_captured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One thread makes a module, which draws random numbers, while another one's capture looks that nobody does."""
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    asked = [lambda: window_program(SHAPE), lambda: prompt_program(SHAPE, 3)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda ask: ask(), asked))
    assert len({program.root for program in found}) == 2
