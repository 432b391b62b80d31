"""Relays of a drand network: a round's signature over HTTP, checked here before anybody pays gas for it.

A relay is trusted with nothing: one that is silent, lies or sends junk is passed over with words, and the next is
asked. A call ends within its seconds and its bytes, and after a failure nobody is asked for a while, so that neither a
relay nor an outage of the network holds up an actor's loop.
Source: drand's HTTP API, version 1, which all relays serve; docs/beacon.md, docs/adr/0027-time-of-stores-and-nodes.md.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import Final

import requests
from urllib3.exceptions import HTTPError

from assay.protocol.errors import UnavailableError
from assay.protocol.run.beacon import DrandNetwork, signed_message
from assay.protocol.types import BeaconRound
from assay_ledger.deadline import Lane, waiting
from assay_ledger.json_input import JsonRefused, parse_json
from assay_ledger.keys import bn254
from assay_ledger.timed_session import TimedSession

CALL_S: Final = 5.0
"""For one relay, from connection to last byte: it may hold a round that is just due back for a period."""

LOOKUP_S: Final = 1.0
"""Beyond it, where the machine is stuck in looking up the relay's name, which nothing interrupts."""

MAX_ANSWER_BYTES: Final = 1 << 12
"""A round takes 270."""

REST_S: Final = 2.0
MAX_REST_S: Final = 240.0
"""After a failure of all relays they rest for REST_S, then twice as long each time: an outage grows by its length at
most, and relays that hang take a twelfth of an actor's time."""

SIGNATURE: Final = re.compile(r"[0-9a-fA-F]{128}")

_LOG = logging.getLogger("assay.agent")


class RelayFault(Exception):
    """What is wrong with a relay's answer, or that there is none; in a few words of ours."""


class Relays:
    """Relays of one network, by their URLs. `clock` gives seconds that never run back."""

    def __init__(
        self,
        network: DrandNetwork,
        urls: Sequence[str],
        *,
        call_s: float = CALL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.network = network
        self.urls = [url.rstrip("/") for url in urls]
        """The one that answered last is asked first."""
        self._call_s, self._clock, self._lane = call_s, clock, Lane()
        self._rest, self._until = 0.0, float("-inf")
        self._said = ""

    def proof(self, beacon_round: BeaconRound) -> bytes:
        """The network's signature of a round, 64 bytes. Raises UnavailableError (BeaconUnavailable), whose
        `retry_after_s` says when it is worth asking again."""
        if self._clock() < self._until:
            raise self._unavailable(self._said)
        faults = []
        for url in list(self.urls):
            try:
                signature = self.ask(url, beacon_round)
            except RelayFault as fault:
                faults.append(f"{url} {fault}")
                continue
            if faults:
                _LOG.info("beacon: %s; %s has the round", "; ".join(faults), url)
            self.urls.remove(url)
            self.urls.insert(0, url)
            self._rest, self._until = 0.0, float("-inf")
            return signature
        self._rest = min(max(2 * self._rest, REST_S), MAX_REST_S)
        self._until = self._clock() + self._rest
        self._said = f"No relay gives round {beacon_round} of {self.network.beacon_id}: {'; '.join(faults)}."
        raise self._unavailable(self._said)

    def ask(self, url: str, beacon_round: BeaconRound) -> bytes:
        """One relay's signature of a round, checked. Raises RelayFault."""
        where = f"{url}/{self.network.chain_hash.hex()}/public/{beacon_round}"
        signature = _signature(self._get(where), beacon_round)
        # Attack: have an actor pay gas for a signature that the contract refuses, again and again.
        if not bn254.verify(self.network.public_key, signature, signed_message(beacon_round)):
            raise RelayFault("sends a signature that is not the network's")
        return signature

    def _get(self, where: str) -> bytes:
        with waiting(self._call_s) as seconds:

            def get() -> requests.Response:
                with TimedSession(seconds, MAX_ANSWER_BYTES) as session:
                    # Attack: be redirected to what only this machine can reach.
                    return session.get(where, headers={"Accept-Encoding": "identity"}, allow_redirects=False)

            try:
                response = self._lane.call(get, seconds + LOOKUP_S if seconds else 0)
            except (requests.RequestException, HTTPError, OSError, ValueError) as error:
                raise RelayFault(f"gives no answer in {seconds:.3g} s ({type(error).__name__})") from error
        if response.status_code != requests.codes.ok:
            raise RelayFault(f"answers with status {response.status_code}")
        return response.content

    def _unavailable(self, said: str) -> UnavailableError:
        return UnavailableError(
            said,
            code="BeaconUnavailable",
            remedy="Name other relays (--drand-relays); a round is the same whenever somebody brings it.",
            retry_after_s=max(self._until - self._clock(), 0.0),
        )


def _signature(answer: bytes, beacon_round: BeaconRound) -> bytes:
    """The signature in a relay's answer about a round. Raises RelayFault."""
    try:
        document = parse_json(answer, max_bytes=MAX_ANSWER_BYTES, max_depth=1)
    except JsonRefused as refused:
        raise RelayFault(f"sends what is no round: {refused}") from None
    if not isinstance(document, dict) or type(document.get("round")) is not int:
        raise RelayFault("sends what is no round")
    # Attack: another round, which would draw something else.
    if document["round"] != beacon_round:
        raise RelayFault("sends another round")
    signature = document.get("signature")
    # Attack: more bytes, or other digits for the same ones.
    if not isinstance(signature, str) or SIGNATURE.fullmatch(signature) is None:
        raise RelayFault("sends no signature of 64 bytes")
    return bytes.fromhex(signature)
