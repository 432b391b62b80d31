"""Answers that providers give every day, one by one: asked again where it helps, else one sentence, never a traceback.

No test waits: what would be waited is written down.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from eth_abi.abi import decode
from eth_account import Account

from assay.protocol.errors import AssayError, ExitCode, RejectedError, UnavailableError
from assay_ledger.chain.answers import LAGGING_FOR_S, NONSENSE_FOR_S, WAIT_MOST_S, wait_before
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import Anvil
from assay_ledger.chain.node_urls import redacted
from assay_ledger.contract import Query
from tests.harness.providers import BODIES, ERRORS, ProviderNode, Reply, Twist, changed, refused, said

SOMEBODY = "0x" + "11" * 20
BALANCE: Query[int] = Query(bytes(20), b"", "any", lambda data: len(data))  # type: ignore[arg-type]

ASKED: dict[str, tuple[str, Callable[[Chain], Any]]] = {
    "head": ("eth_getBlockByNumber", lambda chain: chain.head().number),
    "newest": ("eth_getBlockByNumber", lambda chain: chain.newest()["number"]),
    "logs": ("eth_getLogs", lambda chain: chain.logs([SOMEBODY], 0, 0)),
    "code": ("eth_getCode", lambda chain: chain.code_at(SOMEBODY)),
    "rpc": ("web3_clientVersion", lambda chain: chain.rpc("web3_clientVersion")[:5]),
}
"""Methods of the client: what they ask of the node, and how they are called."""


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        yield running


@pytest.fixture(scope="module")
def provider(node: Anvil) -> Iterator[ProviderNode]:
    with ProviderNode(node.url) as made:
        yield made


class WaitingChain:
    """A client over the provider, and the seconds that it would have waited."""

    def __init__(self, provider: ProviderNode, path: str = "") -> None:
        self.waits: list[float] = []
        provider.turn()
        self.chain = Chain(provider.url + path, sleep=self.waits.append)


@pytest.fixture
def made(provider: ProviderNode) -> Iterator[WaitingChain]:
    yield WaitingChain(provider)
    provider.turn()


PASSING = {**BODIES, **ERRORS}
PAIRS = [
    pytest.param(what, name, id=f"{what} - {name}")
    for what in ASKED
    for name in PASSING
    if what != "rpc" or not name.startswith("a result that is")  # which may well be meant there
]


@pytest.mark.gate_takes(40)
@pytest.mark.parametrize(("what", "name"), PAIRS)
def test_an_answer_that_passes_is_waited_out(provider: ProviderNode, made: WaitingChain, what: str, name: str) -> None:
    method, ask = ASKED[what]
    right = ask(made.chain)
    made.waits.clear()
    provider.turn(PASSING[name], 2, [method])
    assert ask(made.chain) == right
    assert len(made.waits) == provider.answered == 2 and 0 < sum(made.waits) <= 2 * WAIT_MOST_S
    asked_for = float(PASSING[name].headers.get("Retry-After", "0").partition(",")[0].replace("Fri", "0"))
    assert min(made.waits) >= asked_for


@pytest.mark.gate_takes(40)
@pytest.mark.parametrize(("what", "name"), PAIRS)
def test_an_answer_that_stays_is_said_in_one_sentence(
    provider: ProviderNode, made: WaitingChain, what: str, name: str
) -> None:
    method, ask = ASKED[what]
    provider.turn(PASSING[name], methods=[method])
    with pytest.raises(UnavailableError) as said_of:
        ask(made.chain)
    error = said_of.value
    assert error.exit_code is ExitCode.NETWORK and error.code in ("NodeUnreachable", "RpcError")
    assert error.message.startswith(f"The chain at {provider.url} ") and "\n" not in error.explain()
    assert error.remedy and len(error.message) < 250
    assert sum(made.waits) < 30 and max(made.waits) <= WAIT_MOST_S


def test_a_page_in_the_place_of_an_answer_is_said_to_be_one(provider: ProviderNode, made: WaitingChain) -> None:
    provider.turn(PASSING["HTML for JSON"], methods=["eth_getCode"])
    with pytest.raises(UnavailableError) as said_of:
        made.chain.code_at(SOMEBODY)
    assert "a web page, perhaps, of a proxy" in said_of.value.message and "RPC URL" in said_of.value.explain()


def test_each_kind_of_failure_has_its_patience(provider: ProviderNode, made: WaitingChain) -> None:
    for name, most in (("an object", NONSENSE_FOR_S), ("header not found", LAGGING_FOR_S), ("limit exceeded", 30.0)):
        made.waits.clear()
        provider.turn(PASSING[name], methods=["eth_getCode"])
        with pytest.raises(UnavailableError):
            made.chain.code_at(SOMEBODY)
        # It ends when one more wait, which is drawn, could go beyond its patience: the longest that it could have been.
        longest = wait_before(len(made.waits) + 1, OSError(), lambda: 1.0)
        assert sum(made.waits) < most <= sum(made.waits) + longest


def test_a_server_that_asks_for_an_hour_is_asked_again_in_seconds(provider: ProviderNode, made: WaitingChain) -> None:
    provider.turn(Reply(b"", 429, {"Retry-After": "3600"}), 2, ["eth_getCode"])
    made.chain.code_at(SOMEBODY)
    assert made.waits == [WAIT_MOST_S] * 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405])
def test_what_a_wrong_key_or_path_gets_is_said_at_once(provider: ProviderNode, made: WaitingChain, status: int) -> None:
    provider.turn(Reply(b"no such project", status), methods=["eth_getCode"])
    with pytest.raises(UnavailableError) as said_of:
        made.chain.code_at(SOMEBODY)
    assert said_of.value.code == "NodeUnreachable" and f"HTTP {status}" in said_of.value.message
    assert made.waits == []


def test_an_error_in_a_response_of_status_400_is_read(provider: ProviderNode, made: WaitingChain) -> None:
    """Some gateways send a node's errors, reverts among them, with a status of 400."""
    provider.turn(refused(3, "execution reverted", 400), methods=["eth_call"])
    with pytest.raises(RejectedError):
        made.chain.ask(BALANCE)
    provider.turn(refused(-32005, "rate limited", 400), 1, ["eth_call"])
    made.chain.ask(BALANCE)
    assert len(made.waits) == 1


@pytest.mark.parametrize("data", ["0xzz", "0x1", "0x08c379a0ffff", "revert", {"a": 1}, 7, None])
def test_a_revert_with_any_data_is_a_refusal(provider: ProviderNode, made: WaitingChain, data: object) -> None:
    error = {"code": 3, "message": "execution reverted", "data": data}
    provider.turn(
        lambda *_: Reply(json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()), methods=["eth_call"]
    )
    with pytest.raises(AssayError) as said_of:
        made.chain.ask(BALANCE)
    assert isinstance(said_of.value, RejectedError | UnavailableError)


# --- keys in URLs


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://mainnet.infura.io/v3/0123456789SECRET", "https://mainnet.infura.io/..."),
        ("https://user:SECRETSECRET@node.example:8545", "https://node.example:8545"),
        ("https://node.example/?apikey=SECRETSECRET", "https://node.example/..."),
        ("https://node.example/#SECRETSECRET", "https://node.example/..."),
        ("http://[::1]:8545/", "http://[::1]:8545"),
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("http://host:SECRETSECRET/", "(a URL that cannot be read)"),
        ("http://[SECRETSECRET", "(a URL that cannot be read)"),
        ("SECRETSECRET", "(a URL without a host)"),
        ("", "(a URL without a host)"),
    ],
)
def test_of_a_url_the_host_is_shown(url: str, shown: str) -> None:
    assert redacted(url) == shown
    if shown != url:
        with pytest.raises(UnavailableError) as said_of:
            Chain(url.replace("https://", "http://").replace("mainnet.infura.io", "127.0.0.1:1"), retry_for_s=0.0)
        assert "SECRET" not in said_of.value.explain() and said_of.value.exit_code is ExitCode.NETWORK


@pytest.mark.parametrize("path", ["/v3/0123456789SECRET", "/rpc?apikey=0123456789SECRET&v=2"])
@pytest.mark.parametrize(
    "reply",
    [
        refused(-32001, "project 0123456789SECRET is over its plan"),
        refused(-32005, "limit exceeded for 0123456789SECRET"),
        refused(-32000, "query returned more than 10000 results (0123456789SECRET)"),
        Reply(b"0123456789SECRET", 429),
        Reply(b"0123456789SECRET"),
        said("0123456789SECRET"),
    ],
)
def test_a_node_that_repeats_the_key_is_not_quoted(provider: ProviderNode, path: str, reply: Reply) -> None:
    chain = WaitingChain(provider, path).chain
    provider.turn(reply)
    for ask in (lambda: chain.head(), lambda: chain.logs([SOMEBODY], 0, 0)):
        with pytest.raises(UnavailableError) as said_of:
            ask()
        assert "SECRET" not in said_of.value.explain() + str(said_of.value)
    provider.turn()


def test_a_call_is_one_request(provider: ProviderNode, made: WaitingChain) -> None:
    """Providers count requests."""
    provider.turn()
    made.chain.ask(BALANCE)
    assert [method for method, _ in provider.asked] == ["eth_call"]
    provider.turn(changed(lambda block: block | {"extraData": "0x" + "00" * 97}), methods=["eth_getBlockByNumber"])
    assert made.chain.head().number >= 0, "as chains of proof of authority have it"


# --- the number of a chain


@pytest.mark.parametrize("number", ["0x0", "-0x1", "later", {}, [], None, hex(1 << 64), "0x" + "f" * 64])
def test_a_chain_that_has_no_number_is_unreachable(provider: ProviderNode, number: object) -> None:
    provider.turn(said(number))
    with pytest.raises(UnavailableError):
        Chain(provider.url, sleep=lambda _: None)
    provider.turn()


def test_a_chain_may_have_a_number_that_javascript_cannot_count(node: Anvil) -> None:
    with Anvil(chain_id=(1 << 53) + 1) as odd:
        chain = Chain(odd.url)
        assert chain.chain_id == (1 << 53) + 1
        assert chain.transfer(Account.from_key(odd.dev_keys[0]), SOMEBODY, 7)["status"] == 1


# --- sending


def dropped(field: str) -> Twist:
    return changed(lambda found: found.pop(field, None) and None if isinstance(found, dict) else None)


SENT: dict[str, tuple[str, Reply, int]] = {
    "nonce too low": ("eth_sendRawTransaction", refused(-32000, "nonce too low: next nonce 7, tx nonce 6"), 1),
    "already known": ("eth_sendRawTransaction", refused(-32000, "already known"), 1),
    "underpriced": ("eth_sendRawTransaction", refused(-32000, "replacement transaction underpriced"), 2),
    "limit exceeded": ("eth_sendRawTransaction", ERRORS["limit exceeded"], 2),
    "429": ("eth_sendRawTransaction", BODIES["429 with Retry-After"], 2),
    "header not found": ("eth_sendRawTransaction", ERRORS["header not found"], 2),
    "HTML": ("eth_sendRawTransaction", BODIES["HTML for JSON"], 2),
    "no fee history": ("eth_feeHistory", refused(-32601, "the method eth_feeHistory does not exist"), 9),
    "a senseless fee history": ("eth_feeHistory", said({"baseFeePerGas": ["0x1"], "reward": [{}]}), 9),
    "a receipt that is {}": ("eth_getTransactionReceipt", said({}), 2),
    "a nonce that is []": ("eth_getTransactionCount", said([]), 2),
}


@pytest.mark.parametrize("name", SENT)
def test_a_payment_is_made_once_whatever_is_answered_meanwhile(provider: ProviderNode, node: Anvil, name: str) -> None:
    method, reply, times = SENT[name]
    payee, payer = Account.create().address, Account.create()
    node.rpc("anvil_setBalance", payer.address, hex(10**18))
    chain = WaitingChain(provider).chain
    provider.turn(reply, times, [method])
    if name in ("nonce too low", "already known"):
        # The transaction is in the pool: the answer is to its second sending.
        provider.turn(lambda params, ask: (ask(*params), reply)[1], times, [method])
    chain.transfer(payer, payee, 7)
    assert provider.answered
    assert int(str(node.rpc("eth_getBalance", payee, "latest")), 16) == 7
    assert int(str(node.rpc("eth_getTransactionCount", payer.address, "latest")), 16) == 1
    provider.turn()


def test_a_block_with_fields_missing_is_an_answer_without_sense(provider: ProviderNode, made: WaitingChain) -> None:
    for missing in ("number", "timestamp", "hash", "parentHash"):
        provider.turn(dropped(missing), methods=["eth_getBlockByNumber"])
        with pytest.raises(UnavailableError):
            made.chain.newest()
    provider.turn(dropped("baseFeePerGas"), methods=["eth_getBlockByNumber"])
    assert made.chain.head().base_fee == 0  # a chain without a fee market


def test_a_chain_without_the_contracts_is_told_from_a_broken_node(made: WaitingChain) -> None:
    """A local chain that was begun anew under a running actor: it has no contract where the run's were."""
    total: Query[int] = Query(bytes(20), b"", "any", lambda data: decode(["uint256"], data)[0])  # type: ignore[arg-type]
    with pytest.raises(UnavailableError, match="makes no sense") as said_of:
        made.chain.ask(total)
    assert said_of.value.remedy.startswith("So answers a chain without the run's contracts")
