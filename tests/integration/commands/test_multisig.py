"""A run whose sponsor is a contract of two owners: posted by a key that may do nothing more, steered by both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_account import Account
from eth_hash.auto import keccak
from eth_utils.address import to_checksum_address

from assay.protocol.types import Address
from assay_ledger.chain.client import address_of
from assay_ledger.rounds.run import Run
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.world import ETHER
from tests.harness.contracts.fresh import write_artifact

EXECUTE = keccak(b"execute(address,uint256,bytes)")[:4]
RECIPE = ("--recipe", "examples.own_run:factory", "--steps", "5", "--rounds", "3", "--seats", "1")


@dataclass
class SponsoredDesk:
    """A desk, a run that it posted, and the two owners of the run's sponsor."""

    desk: Desk
    multisig: Address
    owners: list[Any]
    document: Any

    @property
    def run(self) -> Run:
        return self.desk.opened(self.document)

    @property
    def word(self) -> str:
        """The multisig as it is typed."""
        return "0x" + self.multisig.hex()

    def execute(self, batch: Any) -> None:
        """Both owners ask for every call of a batch."""
        assert batch["chainId"] == str(self.desk.stage.chain.chain_id)
        for call in batch["transactions"]:
            values = [call["to"], int(call["value"]), bytes.fromhex(call["data"][2:])]
            data = EXECUTE + encode(["address", "uint256", "bytes"], values)
            for owner in self.owners:
                self.desk.stage.chain.send_data(owner, self.multisig, data)

    def printed(self, *words: str, said: str) -> Any:
        """The batch that a command prints for the multisig; `said`: what it says of it first."""
        done = self.desk.at(self.run)(*words, *self.desk.at(self.run).run_words, "--multisig", self.word)
        assert done.exit_code == 0 and said in " ".join(done.stderr.split())
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def sponsored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SponsoredDesk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as desk:
        write_artifact(desk.folder / "artifacts", "TwoOwners")
        chain = desk.stage.chain
        owners = [Account.create(), Account.create()]
        for owner in owners:
            chain.transfer(desk.stage.sponsor, owner.address, ETHER)
        multisig, _ = chain.deploy(desk.stage.sponsor, "TwoOwners", *(owner.address for owner in owners))
        document = desk.post(*RECIPE, "--sponsor-multisig", "0x" + multisig.hex())
        yield SponsoredDesk(desk, multisig, owners, document)


def test_a_sponsor_of_two_owners_funds_cancels_and_is_paid_back(sponsored: SponsoredDesk) -> None:
    run, chain, made = sponsored.run, sponsored.desk.stage.chain, sponsored
    assert run.charter.sponsor == made.multisig
    wei = made.document["escrow"]
    assert chain.ask(run.escrow.balance()) == 0 and chain.ask(run.token.balance_of(made.multisig)) == wei
    made.execute(made.document["batch"])
    assert chain.ask(run.escrow.balance()) == wei and chain.ask(run.escrow.funded_of(made.multisig)) == wei
    at = (*sponsored.desk.at(run).run_words, *sponsored.desk.key_words)
    assert sponsored.desk.refused("run", "cancel", "--yes", *at).code == "NotTheSponsor"
    made.execute(made.printed("run", "cancel", said="It can never open afterwards"))
    made.execute(made.printed("run", "refund", said="Nothing was sent"))
    assert chain.ask(run.vault.free(made.multisig)) == wei
    made.execute(made.printed("ledger", "unstake", str(wei // 10**18), said="of chain time after the call"))
    leaving, not_before = chain.ask(run.vault.exiting(made.multisig))
    early = made.desk.refused("ledger", "withdraw", *made.desk.at(run).run_words, "--multisig", made.word)
    assert early.code == "ExitTooEarly"
    chain.rpc("evm_mine", hex(not_before + 1))
    made.execute(made.printed("ledger", "withdraw", said=f"wei) to {to_checksum_address(made.word)}"))
    assert chain.ask(run.token.balance_of(made.multisig)) == leaving > 0


def test_a_multisig_hears_of_a_withdrawal_address_what_a_key_hears(sponsored: SponsoredDesk) -> None:
    """It is for ever, and an address that nobody has used may be nobody's."""
    made, run, nobodys = sponsored, sponsored.run, Account.create().address
    owner = made.owners[0].address
    for address in (nobodys, owner):
        batch = made.printed("ledger", "withdrawal-address", address, said="which alone can name another")
    made.printed("ledger", "withdrawal-address", nobodys, said=f"Nobody has used {nobodys} on this chain yet")
    made.execute(batch)
    assert made.desk.stage.chain.ask(run.vault.payee_of(made.multisig)) == address_of(made.owners[0])
    # It is tried as the multisig, which may no longer name anybody.
    words = ("ledger", "withdrawal-address", nobodys, *made.desk.at(run).run_words, "--multisig", made.word)
    assert made.desk.refused(*words).code == "NotThePayee"


def test_one_owner_alone_moves_nothing(sponsored: SponsoredDesk) -> None:
    run, chain = sponsored.run, sponsored.desk.stage.chain
    call = run.token.approve(address_of(sponsored.owners[0]), 7)
    data = EXECUTE + encode(["address", "uint256", "bytes"], [bytes(call.to), 0, call.data])
    for _ in range(2):
        chain.send_data(sponsored.owners[0], sponsored.multisig, data)
    assert chain.ask(run.token.allowance(sponsored.multisig, address_of(sponsored.owners[0]))) == 0


@pytest.mark.parametrize("kind", ["nobody", "a key"])
def test_an_address_without_a_contract_sponsors_no_run(sponsored: SponsoredDesk, kind: str) -> None:
    address = "0x" + "77" * 20 if kind == "nobody" else sponsored.owners[0].address
    words = (*sponsored.desk.chain_words, *sponsored.desk.store_words, *sponsored.desk.key_words)
    refused = sponsored.desk.refused("run", "post", *RECIPE, "--sponsor-multisig", address, "--yes", *words)
    assert refused.code == "NotAMultisig"
