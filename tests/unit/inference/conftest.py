"""One cache of captured programs for all tests of text: the same few programs are asked for everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def programs_kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of its own, empty at the start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_CACHE", str(tmp_path_factory.mktemp("programs")))
        yield
