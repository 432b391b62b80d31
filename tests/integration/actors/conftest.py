"""One node per test module: runs are cheap, nodes are not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.actors.disputed import disputed_run
from tests.harness.actors.whole_run import WholeRun
from tests.harness.actors.world import SharedChain, actors_artifacts


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedChain]:
    with actors_artifacts(tmp_path_factory.mktemp("artifacts")):
        stage = SharedChain()
        yield stage
        stage.close()


@pytest.fixture(scope="module")
def disputed(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    return disputed_run(stage, tmp_path_factory.mktemp("disputed"))
