"""An account whose key is elsewhere: Web3Signer (`eth_signTransaction`) or Clef (`account_signTransaction`) over HTTP.

Neither the signer nor the way to it is trusted: what comes back must be, field by field, what was asked for, signed by
the account; anything else is named and never sent. Source: docs/adr/0058-keys.md.
"""

from __future__ import annotations

import json
from typing import Any, Final

import requests
from eth_account import Account
from eth_account.datastructures import SignedTransaction
from eth_account.messages import encode_defunct
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_account.types import TransactionDictType
from eth_typing import ChecksumAddress
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes

from assay.protocol.digests import keccak
from assay.protocol.errors import FraudError, UnavailableError
from assay_ledger.chain.answers import reason
from assay_ledger.chain.node_urls import redacted, without_keys
from assay_ledger.chain.sent import DAMAGED
from assay_ledger.json_input import JsonRefused, parse_json
from assay_ledger.timed_session import AnswerRefused, TimedSession

SIGN_S: Final = 10.0
"""For one signature, from connection to last byte: a signer is near, and a move waits for it."""

MAX_ANSWER: Final = 1 << 20
"""Bytes: a transaction of 128 KiB in hexadecimal digits, twice, and some."""

_NO_METHOD: Final = -32601
_NUMBERS: Final = ("chainId", "type", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "value", "gas")


class SignerUnreachable(UnavailableError):
    """A signer does not answer, or not in time, or with nonsense."""

    remedy = "Check that the signer runs and that --signer names it; nothing was sent."


class SignerRefused(UnavailableError):
    """A signer says no."""

    remedy = "Its log and its rules say why; nothing was sent, and it is asked again."


class SignerAltered(FraudError):
    """A signer, or somebody on the way to it, gave back another transaction than it was asked to sign."""

    remedy = "Nothing was sent. Look at the signer and at the way to it before you go on."


class _MethodUnknown(Exception):
    """The signer has no such method."""


class RemoteSigner:
    """Signs transactions of one account at a URL, whose user, password and path are never shown."""

    def __init__(self, url: str, address: str, seconds: float = SIGN_S) -> None:
        self.address: ChecksumAddress = to_checksum_address(address)
        self._url, self._place = url, redacted(url)
        self._session = TimedSession(seconds, MAX_ANSWER)

    def sign_transaction(self, transaction_dict: TransactionDictType) -> SignedTransaction:
        """See TransactionSigner."""
        asked: dict[str, Any] = dict(transaction_dict)
        wire = {name: hex(asked[name]) for name in _NUMBERS}
        wire |= {"from": self.address, "data": "0x" + bytes(asked["data"]).hex()}
        if "to" in asked:
            wire["to"] = str(asked["to"])
        try:
            answer = self._ask("eth_signTransaction", [wire])
        except _MethodUnknown:
            answer = self._known("account_signTransaction", [wire])
        return self._checked(asked, answer.get("raw") if isinstance(answer, dict) else answer)

    def sign_text(self, text: str) -> bytes:
        """The account's signature under a text (EIP-191). Raises SignerUnreachable, SignerRefused, SignerAltered."""
        message = encode_defunct(text=text)
        data = "0x" + text.encode().hex()
        try:
            answer = self._ask("eth_sign", [self.address, data])
        except _MethodUnknown:
            answer = self._known("account_signData", ["text/plain", self.address, data])
        try:
            signature = bytes.fromhex(str(answer).removeprefix("0x"))
            signer = Account.recover_message(message, signature=signature)
        except DAMAGED:
            raise SignerAltered(f"What the signer at {self._place} gives back is no signature.") from None
        if signer != self.address:
            raise SignerAltered(f"The signer at {self._place} signed as {signer}, not as {self.address}.")
        return signature

    def _checked(self, asked: dict[str, Any], raw: object) -> SignedTransaction:
        try:
            data = HexBytes(str(raw))
            signed = TypedTransaction.from_bytes(data).as_dict()
            sender = Account.recover_transaction(data)
        except DAMAGED:
            raise SignerAltered(f"What the signer at {self._place} gives back is no signed transaction.") from None
        found = {name: signed.get(name) for name in _NUMBERS}
        found |= {"data": bytes(signed["data"]), "to": bytes(signed["to"]), "accessList": tuple(signed["accessList"])}
        wanted = {name: asked[name] for name in _NUMBERS}
        wanted |= {"data": bytes(asked["data"]), "to": bytes.fromhex(asked.get("to", "")[2:]), "accessList": ()}
        altered = sorted(name for name in wanted if found[name] != wanted[name])
        # Attack: a signer, or a man between, that pays itself, spends other nonces, or offers all that there is.
        if altered:
            raise SignerAltered(f"The signer at {self._place} altered {', '.join(altered)}.", altered=altered)
        if sender != self.address:
            raise SignerAltered(f"The signer at {self._place} signed as {sender}, not as {self.address}.")
        return SignedTransaction(data, HexBytes(keccak(bytes(data))), signed["r"], signed["s"], signed["v"])

    def _known(self, method: str, params: list[Any]) -> Any:
        try:
            return self._ask(method, params)
        except _MethodUnknown:
            raise SignerRefused(f"The signer at {self._place} has no {method}.") from None

    def _ask(self, method: str, params: list[Any]) -> Any:
        return ask_signer(self._session, self._url, method, params)


def accounts_of(url: str, seconds: float = SIGN_S) -> list[ChecksumAddress]:
    """The accounts that a signer has. Raises SignerUnreachable, SignerRefused."""
    session = TimedSession(seconds, MAX_ANSWER)
    try:
        try:
            found = ask_signer(session, url, "eth_accounts", [])
        except _MethodUnknown:
            found = ask_signer(session, url, "account_list", [])
        return [to_checksum_address(str(each)) for each in list(found)]
    except (_MethodUnknown, TypeError, ValueError):
        raise SignerUnreachable(f"The signer at {redacted(url)} does not list its accounts.") from None


def ask_signer(session: TimedSession, url: str, method: str, params: list[Any]) -> Any:
    """The result of a request. Raises SignerUnreachable, SignerRefused, _MethodUnknown."""
    place = redacted(url)
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        response = session.post(url, data=json.dumps(request), headers={"Content-Type": "application/json"})
        answer = parse_json(response.content, max_bytes=MAX_ANSWER)
    except JsonRefused:
        raise SignerUnreachable(f"The signer at {place} answers HTTP {response.status_code} without sense.") from None
    except (requests.RequestException, AnswerRefused, OSError) as error:
        raise SignerUnreachable(f"The signer at {place} does not answer ({reason(error)}).") from None
    if not isinstance(answer, dict):
        raise SignerUnreachable(f"The signer at {place} gives an answer that makes no sense.")
    if (refusal := answer.get("error")) is not None:
        if isinstance(refusal, dict) and refusal.get("code") == _NO_METHOD:
            raise _MethodUnknown
        told = str(refusal.get("message") if isinstance(refusal, dict) else refusal)[:120]
        raise SignerRefused(f"The signer at {place} refuses ({without_keys(told, url)}).")
    return answer.get("result")
