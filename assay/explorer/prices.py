"""What gateways ask for a token: nothing of the chain says so, each is asked itself.

Whoever starts the explorer names their URLs. They are asked in the background, when a page wants it and the last look
is older than a minute: what is shown says of when it is, and is a gateway's own word.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from assay.explorer.lookups import Lookups
from assay.protocol.errors import AssayError, UsageError
from assay.protocol.types import Address, Digest, Wei

EVERY_S: Final = 60.0
"""Between two looks."""

ANSWER_S: Final = 5.0
"""So long a gateway may take to say its terms."""

AT_ONCE: Final = 8
MOST: Final = 64
"""Gateways that an explorer asks."""

MAX_URL: Final = 200

KEY: Final = "prices"


@dataclass(frozen=True, slots=True)
class GatewayTermsSaid:
    """What a gateway says that it serves. price: wei of the token for each token of prompt and answer. model: root of
    its parameters. tokens, prompt: the most of an answer and of a prompt.
    """

    gateway: Address
    name: str
    model: Digest
    chain_id: int
    token: Address
    price: Wei
    tokens: int
    prompt: int


@dataclass(frozen=True, slots=True)
class AskedGateway:
    """One gateway, as it was asked; said: None where `problem` is the code of why it said nothing."""

    url: str
    said: GatewayTermsSaid | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SeenPrices:
    """One look, at a time of this machine in seconds since 1970."""

    at: float
    gateways: tuple[AskedGateway, ...]


def gateway_urls(urls: Sequence[str]) -> list[str]:
    """URLs as they may be asked, and shown to everybody. Raises UsageError (GatewayUrl)."""
    for url in urls:
        try:
            found = urlsplit(url)
            is_one = found.scheme in ("http", "https") and found.hostname and found.port != 0
        except ValueError:
            is_one = False
        if not is_one or len(url) > MAX_URL or not url.isprintable() or " " in url:
            raise _no_url(f"{url[:MAX_URL]!r} is no address of a gateway.")
        if found.username is not None or found.query or found.fragment:
            raise _no_url("The address of a gateway is shown to everybody: it may have no password and no question.")
    if len(urls) > MOST:
        raise _no_url(f"An explorer asks {MOST} gateways at most.")
    return list(dict.fromkeys(urls))


def _no_url(message: str) -> UsageError:
    return UsageError(
        message, code="GatewayUrl", remedy="Name it as `assay gateway start` printed it: http://HOST:PORT."
    )


class GatewayPrices:
    """What was last heard of some gateways, in the order in which they were named."""

    def __init__(self, urls: Sequence[str], clock: Callable[[], float] = time.time) -> None:
        self.urls, self._clock = tuple(urls), clock
        # Of its own, so that a gateway that is slow keeps no question to the node waiting.
        self.lookups = Lookups("prices")
        self._seen: SeenPrices | None = None

    def seen(self) -> SeenPrices | None:
        """The last look, and another one begun where that is old; None before the first is back."""
        if self._seen is None or self._clock() - self._seen.at >= EVERY_S:
            found = self.lookups.find(KEY, self.look)
            if found is not None:
                self._seen = found
                self.lookups.forget(lambda key: key == KEY)
        return self._seen

    @property
    def version(self) -> tuple[int, int]:
        """Changes when a look is back, and when the next is due."""
        return self.lookups.version, int(self._clock() / EVERY_S)

    def look(self) -> SeenPrices:
        """Asks all of them, some at once."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return SeenPrices(self._clock(), tuple(pool.map(_asked, self.urls)))


def _asked(url: str) -> AskedGateway:
    from assay.inference.relay.upstream import Upstream  # brings torch, which nothing else here needs

    upstream = Upstream(url, ANSWER_S)
    try:
        found = upstream.model()
    except AssayError as error:
        return AskedGateway(url, None, error.code)
    finally:
        upstream.close()
    till = found.till
    terms = till.gateway, found.name[:80], found.model, till.domain.chain_id, till.token, till.price
    return AskedGateway(url, GatewayTermsSaid(*terms, found.tokens, found.prompt))
