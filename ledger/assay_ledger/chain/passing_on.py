"""What is sent to one of several nodes goes to the others too, and nobody waits for them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from assay_ledger.chain.answers import reason
from assay_ledger.chain.endpoint import Endpoint

PASSED_ON_AT_ONCE: Final = 64
"""Transactions on their way to other nodes; what is more is sent to them when it is sent again."""

_LOG = logging.getLogger("assay.rpc")


class PassingOn:
    """Sends to many at once. `send` asks one node; what it raises of `failed` is noted and nothing else."""

    def __init__(self, send: Callable[[Endpoint, Any], object], failed: tuple[type[BaseException], ...]) -> None:
        self._send, self._failed = send, failed
        self._under_way = threading.BoundedSemaphore(PASSED_ON_AT_ONCE)

    def to(self, endpoints: Iterable[Endpoint], params: Any) -> None:
        """Begins to send to each."""
        for endpoint in endpoints:
            if not self._under_way.acquire(blocking=False):
                return
            threading.Thread(target=self._to, args=(endpoint, params), daemon=True, name="assay-pass-on").start()

    def _to(self, endpoint: Endpoint, params: Any) -> None:
        try:
            self._send(endpoint, params)
        except self._failed as error:
            _LOG.debug("%s was not sent a transaction: %s", endpoint.place, reason(error))
        finally:
            self._under_way.release()
