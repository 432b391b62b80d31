"""Shared by all tests with actors and commands: what one process decodes and checks once."""

from collections.abc import Iterator

import pytest

from assay_ledger.store import programs_in_use


@pytest.fixture(scope="session", autouse=True)
def _programs_in_use() -> Iterator[None]:
    """Hundreds of runs here have the same few programs, whose actors have come and gone before the next one reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs_in_use, "_IN_USE", {})
        yield
