"""A node before which a pool holds transactions as public ones do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay_ledger.chain.node import Anvil
from tests.harness.mempool import Mempool


@pytest.fixture(scope="module")
def behind_pool() -> Iterator[Anvil]:
    with Anvil(accounts=1) as made:
        yield made


@pytest.fixture
def pool(behind_pool: Anvil) -> Iterator[Mempool]:
    with Mempool(behind_pool) as made:
        made.mine()
        yield made
