"""What an account has signed and the chain has not taken yet: by nonce, also on disk, so that a restart can replace it.

A pool replaces a transaction only by one that offers more, so a process that forgets what it offered can be stuck
behind itself. Only signed transactions are kept, one JSON line each; the file is emptied whenever nothing is in flight.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any, Final

from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_keys.exceptions import BadSignature
from eth_utils.exceptions import ValidationError
from hexbytes import HexBytes
from rlp.exceptions import RLPException  # type: ignore[import-untyped]

from assay.protocol.digests import keccak
from assay_ledger.chain.fees import Offer
from assay_ledger.chain.transaction_signer import TransactionSigner
from assay_ledger.disk_told import DiskTold
from assay_ledger.json_input import JsonRefused, parse_json

MAX_LINE_BYTES: Final = 1 << 19
"""A transaction of 128 KiB in hexadecimal digits, and some."""

DAMAGED: Final = (
    *(JsonRefused, RLPException, BadSignature, ValidationError),
    *(LookupError, TypeError, ValueError, ArithmeticError),
)
"""What reading a line raises that is no transaction of anybody's."""

_LOG = logging.getLogger("assay.outbox")


@dataclass(frozen=True, slots=True)
class Payload:
    """What a transaction does: `to` as hexadecimal digits (None creates a contract), `value` in wei."""

    to: str | None
    data: bytes = b""
    value: int = 0
    gas: int = field(default=21_000, compare=False)
    """The same call estimated anew may need another amount."""
    nonce: int | None = field(default=None, compare=False)
    """The only nonce that it may take, None for any: then nothing that its account did is unknown to its sender."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One signed transaction."""

    raw: bytes
    call: Payload
    offer: Offer

    @property
    def hash(self) -> bytes:
        """Its hash, by which the chain names it."""
        return keccak(self.raw)


@dataclass(slots=True)
class NonceSlot:
    """All transactions signed for one nonce, oldest first; `sent_at`: block number at the last sending.

    `missed_at`: the block at which the chain first counted the nonce and had no receipt of any of them.
    """

    attempts: list[Attempt]
    sent_at: int = 0
    missed_at: int | None = None

    @property
    def call(self) -> Payload:
        """What the newest one does."""
        return self.attempts[-1].call

    @property
    def offer(self) -> Offer:
        """What the newest one offers: the most of all."""
        return self.attempts[-1].offer


class SentFile:
    """The file of an account's transactions in flight; without a path nothing outlives the process.

    A disk that is full or read-only costs the record, never the transaction.
    """

    def __init__(self, account: TransactionSigner, chain_id: int, path: Path | None) -> None:
        self._account, self._chain_id, self.path = account, chain_id, path
        self._told = DiskTold(_LOG)

    def load(self) -> dict[int, NonceSlot]:
        """Slots by nonce as the last process left them; lines that are not this account's are passed over."""
        slots: dict[int, NonceSlot] = {}
        if self.path is None or not self.path.exists():
            return slots
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError as error:
            _LOG.warning("%s cannot be read: %s", self.path, error)
            return slots
        for line in lines:
            if (found := self._parse(line)) is not None:
                slots.setdefault(found[0], NonceSlot([])).attempts.append(found[1])
        return slots

    def add(self, raw: bytes) -> None:
        """Writes a signed transaction; it is on disk before it is sent."""
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.path.open("a+b", buffering=0) as file:
                _append_line(file, json.dumps({"raw": raw.hex()}).encode())
            self._told.took(len(raw), self.path)
        except OSError as error:
            self._told.refused(len(raw), "%s cannot be written: %s", self.path, error)

    def clear(self) -> None:
        """Nothing is in flight any more."""
        if self.path is None or not self.path.exists():
            return
        try:
            os.truncate(self.path, 0)
        except OSError as error:
            _LOG.warning("%s cannot be emptied: %s", self.path, error)

    def _parse(self, line: bytes) -> tuple[int, Attempt] | None:
        try:
            entry = parse_json(line, max_bytes=MAX_LINE_BYTES)
            raw = bytes.fromhex(entry["raw"])
            if Account.recover_transaction(raw) != self._account.address:
                return None
            values = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
            return self._attempt(raw, values)
        except DAMAGED:
            # A crash cut the line short, or somebody wrote into the folder: nothing depends on it.
            return None

    def _attempt(self, raw: bytes, values: dict[str, Any]) -> tuple[int, Attempt] | None:
        if values.get("chainId") != self._chain_id or values.get("type") != 2:
            return None
        to = bytes(values["to"])
        call = Payload("0x" + to.hex() if to else None, bytes(values["data"]), values["value"], values["gas"])
        return values["nonce"], Attempt(raw, call, Offer(values["maxFeePerGas"], values["maxPriorityFeePerGas"]))


def _append_line(file: FileIO, line: bytes) -> None:
    """A whole line, on disk when it returns, or nothing of it. Raises OSError.

    Half a line, which a crash left or a full disk, is ended first: it must not take the next one along.
    """
    end = file.seek(0, os.SEEK_END)
    is_torn = end > 0 and os.pread(file.fileno(), 1, end - 1) != b"\n"
    left = memoryview((b"\n" if is_torn else b"") + line + b"\n")
    try:
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            file.truncate(end)
        raise
