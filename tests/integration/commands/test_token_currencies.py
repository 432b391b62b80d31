"""How amounts of a token are written, as a stranger's contract says it: bounded, or not believed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.amounts import SYMBOL_SHOWN, UNKNOWN_MONEY, Currency
from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.types import Address
from assay_ledger.bindings.token import TokenContract
from assay_ledger.rounds.currencies import read_currency
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.contracts.fresh import write_artifact

PUSH32, MSTORE, RETURN = b"\x7f", bytes.fromhex("600052"), bytes.fromhex("60206000f3")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        for name in ("OddToken", "SilentToken", "ChangingToken"):
            write_artifact(found.folder / "artifacts", name)
        yield found


def says(desk: Desk, token: Address, decimals: int, symbol: str, *, silent: bool = False) -> None:
    call = TokenContract(token)._call("say(uint8,string,bool)", decimals, symbol, silent)
    desk.stage.chain.send_data(desk.stage.sponsor, token, call.data)


def answering(desk: Desk, code: bytes, at: int) -> Address:
    """A contract of these bytes, whatever it is asked."""
    place = Address(at.to_bytes(20, "big"))
    desk.stage.chain.rpc("anvil_setCode", "0x" + place.hex(), "0x" + code.hex())
    return place


def test_decimals_and_symbol_are_what_a_token_says(desk: Desk) -> None:
    chain, sponsor = desk.stage.chain, desk.stage.sponsor
    for decimals in (0, 6, 18, 24, 36):
        token = chain.deploy(sponsor, "OddToken", decimals)[0]
        assert read_currency(chain, token) == Currency(decimals, "ODD")
    assert read_currency(chain, chain.deploy(sponsor, "SilentToken")[0]) == Currency(18), "no symbol is no fault"
    changing = chain.deploy(sponsor, "ChangingToken")[0]
    assert read_currency(chain, changing) == Currency(6, "USDC")
    says(desk, changing, 8, "\x1b[2J" + "W" * 5000)
    assert read_currency(chain, changing) == Currency(8, ("2J" + "W" * 50)[:SYMBOL_SHOWN])


def test_what_no_token_can_say_is_not_believed_and_stops_nobody(desk: Desk) -> None:
    chain = desk.stage.chain
    changing = chain.deploy(desk.stage.sponsor, "ChangingToken")[0]
    for decimals in (37, 77, 255):
        says(desk, changing, decimals, "USDC")
        assert read_currency(chain, changing) == UNKNOWN_MONEY
    says(desk, changing, 6, "USDC", silent=True)
    assert read_currency(chain, changing) == UNKNOWN_MONEY
    word = PUSH32 + b"\xff" * 32 + MSTORE + RETURN
    for k, code in enumerate((b"\x00", b"\xfe", word, bytes.fromhex("5b600056"))):  # nothing, a fault, all ones, a loop
        assert read_currency(chain, answering(desk, code, 0x70CE + k)) == UNKNOWN_MONEY
    assert read_currency(chain, Address(b"\x07" * 20)) == UNKNOWN_MONEY, "there is no contract"


def test_a_symbol_of_32_bytes_is_read_as_older_tokens_give_it(desk: Desk) -> None:
    """The same word answers both questions here: its number would be too many decimals, so a small one is given."""
    said = b"\0" * 31 + b"\x06"
    assert read_currency(desk.stage.chain, answering(desk, PUSH32 + said + MSTORE + RETURN, 0x3A)) == Currency(6, "")


def test_a_node_that_does_not_answer_is_no_token_without_decimals(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack on whoever takes part: a node that is away for a moment makes amounts mean something else."""
    chain, errors = desk.stage.chain, iter((UnavailableError("away", code="NodeUnreachable"), RejectedError("no")))

    def ask(*_: object, **__: object) -> object:
        raise next(errors)

    monkeypatch.setattr(type(chain), "ask", ask)
    with pytest.raises(UnavailableError):
        read_currency(chain, Address(b"\x01" * 20))
    assert read_currency(chain, Address(b"\x01" * 20)) == UNKNOWN_MONEY
