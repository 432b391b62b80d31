"""New heads as a node announces them over a WebSocket, so that whoever waits for a block looks at once.

What is announced is a hint and nothing else: the chain is read over HTTP as ever, and asked as often as without it.
A subscription that is silent, dead or lying costs nobody a moment. Source: docs/nodes.md.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from web3 import AsyncWeb3, WebSocketProvider

from assay_ledger.chain.answers import reason
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node_urls import redacted, without_keys

OPEN_S: Final = 5.0
"""For a connection and for each of the two questions before the first announcement."""

SILENT_S: Final = 60.0
"""A subscription that says nothing for so long is made anew: a gateway may have lost it, and keeps the connection."""

REST_S: Final = 1.0
REST_MOST_S: Final = 60.0
"""Twice as long after each failure."""

MOST_BYTES: Final = 1 << 14
"""Of one message; a header has about 1 KiB. web3 keeps 1,000 of them unasked, which a hostile server fills."""

_LOG = logging.getLogger("assay.rpc")

Announce = Callable[[int], None]
"""Is told the number of a block that is said to be there."""


class HeadSubscription:
    """One node's `newHeads`, followed by a thread until `close`."""

    def __init__(self, url: str, chain_id: int, announce: Announce) -> None:
        """`chain_id`: a node of another chain announces nothing."""
        self._url, self._chain_id, self._announce = url, chain_id, announce
        self._failures = 0
        self._is_lost = False
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="assay-heads")
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; harmless when repeated."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join(OPEN_S)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._task = self._loop.create_task(self._follow())
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._task)
        finally:
            self._loop.close()

    async def _follow(self) -> None:
        while True:
            try:
                await self._subscribe()
            except Exception as error:
                # Whatever a stranger's server makes of the protocol: blocks are asked for all the same.
                self._failures += 1
                if not self._is_lost:
                    self._is_lost = True
                    why = without_keys(reason(error), self._url)
                    _LOG.warning("%s announces no blocks (%s); they are asked for.", redacted(self._url), why)
            await asyncio.sleep(min(REST_S * 2 ** min(self._failures, 12), REST_MOST_S))

    async def _subscribe(self) -> None:
        options = {"max_size": MOST_BYTES, "open_timeout": OPEN_S, "close_timeout": 1.0, "proxy": None}
        provider = WebSocketProvider(
            self._url, websocket_kwargs=options, request_timeout=OPEN_S, max_connection_retries=1
        )
        async with AsyncWeb3(provider) as w3:
            number = await w3.eth.chain_id
            if number != self._chain_id:
                raise ValueError(f"it is of chain {number}")
            await w3.eth.subscribe("newHeads")
            messages = w3.socket.process_subscriptions().__aiter__()
            while True:
                message = await _within(messages.__anext__(), SILENT_S)
                number = int(message["result"]["number"])
                if self._is_lost:
                    _LOG.info("%s announces blocks again", redacted(self._url))
                self._failures, self._is_lost = 0, False
                self._announce(number)


async def _within(message: Awaitable[Any], seconds: float) -> Any:
    return await asyncio.wait_for(message, seconds)


@contextmanager
def announced(chain: Chain, url: str | None) -> Iterator[None]:
    """In this block whoever waits for a block of the chain is woken by what the node at a ws:// or wss:// URL
    announces; without a URL, by nothing."""
    if url is None:
        yield
        return
    subscription = HeadSubscription(url, chain.chain_id, chain.pace.announce)
    try:
        yield
    finally:
        subscription.close()
