"""A signed statement: this model, asked this, answered that. One statement has one byte string.

EIP-712 typed data in canonical JSON (RFC 8785): digests and addresses are `0x` and lower-case hex, the seed a decimal
string, all else integers. Any other bytes are no statement. Source: docs/adr/0062-inference.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import coincurve
from eth_keys.datatypes import Signature
from eth_keys.exceptions import BadSignature
from eth_utils.exceptions import ValidationError

from assay.inference.generate import NO_END
from assay.inference.model import MAX_TOKENS
from assay.inference.sampling import MAX_TEMPERATURE, SamplingTerms
from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.errors import RejectedError
from assay.protocol.types import Address, Digest
from assay_ledger.json_input import JsonRefused, parse_json

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

    from assay.inference.model import LanguageModel

FORMAT: Final = "assay-inference-1"
MAX_BYTES: Final = 1 << 21
NO_RUN: Final = Address(bytes(20))

DOMAIN_TYPE: Final = "EIP712Domain(string name,string version,uint256 chainId)"
DOMAIN_NAME: Final = "Assay inference"
DOMAIN_VERSION: Final = "1"
ANSWER_TYPE: Final = (
    "Answer(address run,bytes32 model,bytes32 program,bytes32 tokenizer,uint32[] prompt,uint64 seed,"
    "uint32 temperature,uint32 topK,uint32 most,uint32 end,uint32[] answer)"
)

_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""Of secp256k1's group; a signature has an s of at most half of it, so that it has one form."""

_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,19}")


class StatementRefused(RejectedError):
    """The bytes are no statement that anybody signed; nothing follows from them."""

    remedy = "Ask whoever sent it for the very bytes that the gateway gave."


@dataclass(frozen=True, slots=True)
class AnswerStatement:
    """What is signed. most: tokens that were asked for; end: the token that ends an answer, `NO_END` for none.

    chain_id, run: 0 without a chain. model: root of the list of parameters; program: of the forward program;
    tokenizer: SHA-256 of its file.
    """

    model: Digest
    program: Digest
    tokenizer: Digest
    prompt: tuple[int, ...]
    terms: SamplingTerms
    most: int
    end: int
    answer: tuple[int, ...]
    chain_id: int = 0
    run: Address = NO_RUN

    @property
    def digest(self) -> Digest:
        """What EIP-712 signs."""
        terms = self.terms
        struct = keccak(
            _ANSWER
            + abi.address(self.run)
            + b"".join(abi.bytes32(d) for d in (self.model, self.program, self.tokenizer))
            + _list(self.prompt)
            + abi.uint(terms.seed, 64)
            + abi.uints((terms.temperature, terms.top_k, self.most, self.end), 32)
            + _list(self.answer)
        )
        return keccak(b"\x19\x01" + _domain(self.chain_id) + struct)


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """A statement, who signed it, and the 65 bytes r, s, v (27 or 28)."""

    statement: AnswerStatement
    signer: Address
    signature: bytes

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        said, terms = self.statement, self.statement.terms
        return {
            "format": FORMAT,
            "chain_id": said.chain_id,
            "run": _hex(said.run),
            "model": _hex(said.model),
            "program": _hex(said.program),
            "tokenizer": _hex(said.tokenizer),
            "prompt": list(said.prompt),
            "seed": str(terms.seed),
            "temperature": terms.temperature,
            "top_k": terms.top_k,
            "most": said.most,
            "end": said.end,
            "answer": list(said.answer),
            "signer": _hex(self.signer),
            "signature": _hex(self.signature),
        }

    def encode(self) -> bytes:
        """The file: RFC 8785, which for ASCII and small integers is sorted keys without spaces."""
        return json.dumps(self.document(), sort_keys=True, separators=(",", ":")).encode()


def statement_of(
    model: LanguageModel,
    prompt: Sequence[int],
    terms: SamplingTerms,
    most: int,
    answer: Sequence[int],
    end: int = NO_END,
) -> AnswerStatement:
    """What is to be said of an answer, of no chain."""
    roots = model.root, model.program.root, model.tokenizer_digest
    return AnswerStatement(*roots, tuple(prompt), terms, most, end, tuple(answer))


def sign(statement: AnswerStatement, account: LocalAccount) -> SignedStatement:
    """The statement under an account's signature."""
    signature = _key(account).sign_recoverable(statement.digest, hasher=None)
    v = bytes([27 + signature[64]])
    return SignedStatement(statement, Address(bytes.fromhex(account.address[2:])), signature[:64] + v)


@lru_cache(maxsize=16)
def _key(account: LocalAccount) -> coincurve.PrivateKey:
    """An account's key, made once: eth-account makes it, and its public key, for each signature anew."""
    return coincurve.PrivateKey(bytes(account.key))


def read_statement(data: bytes) -> SignedStatement:
    """The statement in a stranger's bytes, once its signature is found to be its signer's. Raises StatementRefused."""
    try:
        document = parse_json(data, max_bytes=MAX_BYTES)
        found = _of_document(document)
    except JsonRefused as error:
        raise StatementRefused(f"This is no statement: {error}.") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise StatementRefused("This is no statement: a part is missing or beyond its bounds.") from None
    # Attack: two files that differ and say the same, one of which somebody keeps as the other's proof.
    if found.encode() != data:
        raise StatementRefused("This is no statement: it is not written in the one form that there is.")
    if recovered(found.statement.digest, found.signature) != found.signer:
        raise StatementRefused(f"The statement is not signed by 0x{found.signer.hex()}, which it names.")
    return found


def recovered(digest: Digest, signature: bytes) -> Address | None:
    """Who signed a digest; None for what is no signature. Attack: the other s, which signs the same."""
    r, s, v = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big"), signature[64]
    if v not in (27, 28) or not 0 < s <= _ORDER // 2:
        return None
    try:
        key = Signature(vrs=(v - 27, r, s)).recover_public_key_from_msg_hash(digest)
    except (BadSignature, ValidationError):
        return None
    return Address(key.to_canonical_address())


def _of_document(document: Mapping[str, Any]) -> SignedStatement:
    """Raises KeyError, TypeError, ValueError, AttributeError."""
    if document["format"] != FORMAT or _DECIMAL.fullmatch(document["seed"]) is None:
        raise ValueError("another format")
    terms = SamplingTerms(
        _bounded(int(document["seed"]), 1 << 64),
        _bounded(document["temperature"], MAX_TEMPERATURE + 1),
        _bounded(document["top_k"], 1 << 31),
    )
    model, program, tokenizer = (Digest(_bytes(document[name], 32)) for name in ("model", "program", "tokenizer"))
    statement = AnswerStatement(
        model,
        program,
        tokenizer,
        _tokens(document["prompt"]),
        terms,
        _bounded(document["most"], MAX_TOKENS + 1),
        _bounded(document["end"], 1 << 32),
        _tokens(document["answer"]),
        _bounded(document["chain_id"], 1 << 53),
        Address(_bytes(document["run"], 20)),
    )
    return SignedStatement(statement, Address(_bytes(document["signer"], 20)), _bytes(document["signature"], 65))


def _bounded(value: Any, bound: int) -> int:
    if type(value) is not int or not 0 <= value < bound:
        raise ValueError("beyond its bounds")
    return value


def _tokens(values: Any) -> tuple[int, ...]:
    if type(values) is not list or len(values) > MAX_TOKENS:
        raise ValueError("no tokens")
    return tuple(_bounded(v, NO_END) for v in values)


def _bytes(text: str, size: int) -> bytes:
    data = bytes.fromhex(text.removeprefix("0x"))
    if len(data) != size:
        raise ValueError("another size")
    return data


def _hex(data: bytes) -> str:
    return "0x" + data.hex()


_ANSWER: Final = keccak(ANSWER_TYPE.encode())


@lru_cache(maxsize=16)
def _domain(chain_id: int) -> Digest:
    """EIP-712's domain separator, the same for all that a gateway signs."""
    names = keccak(DOMAIN_NAME.encode()) + keccak(DOMAIN_VERSION.encode())
    return keccak(keccak(DOMAIN_TYPE.encode()) + names + abi.uint(chain_id))


def _list(values: Sequence[int]) -> Digest:
    """The hash of a uint32[]."""
    return keccak(abi.uints(values, 32))
