"""A run on a node of this machine, with payers that hold tokens, a gateway's account, and keys on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.protocol.errors import AssayError
from assay.protocol.payments.voucher import Voucher, VoucherDomain
from assay.protocol.types import Address, Wei
from assay_ledger.bindings.token import TokenContract
from assay_ledger.bindings.vouchers import VouchersContract
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.node import Anvil
from assay_ledger.deployment.deploy import deploy_run, deploy_seed, deploy_token
from assay_ledger.deployment.places import GOVERNOR, LEAVES, ROUND_CONTRACTS
from assay_ledger.deployment.vouchers import vouchers_place
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import Run
from assay_ledger.vouchers.signed import SignedVoucher, sign_voucher
from tests.harness.commands import assay_on
from tests.harness.contracts.fresh import fresh_artifacts
from tests.harness.rounds.samples import ETHER, START, mark
from tests.unit.ledger.test_deploy import real_charter

NAMES = ["RunDeployer", "RunCharter", "TestToken", "PrevrandaoSeed", "DrandSeed", "Arbiter", "Vouchers"]
BESIDE = ["AnswerDeployer", "AnswerCharter", "Gateways"]


@dataclass
class PaidRun:
    """A run, its contract of vouchers, payers with keys on disk and tokens, and a gateway's account."""

    chain: Chain
    run: Run
    folder: Path
    keys: Sequence[LocalAccount]
    gateway: LocalAccount
    contract: VouchersContract

    @property
    def token(self) -> Address:
        return self.run.charter.token

    @property
    def domain(self) -> VoucherDomain:
        return VoucherDomain(self.chain.chain_id, self.contract.address)

    def words(self, who: int, *words: str) -> tuple[str, ...]:
        """A command of a payer."""
        named = ("--key", str(self.folder / f"payer-{who}.json"), "--password-file", str(self.folder / "password"))
        return ("gateway", *words, *named)

    def done(self, *words: str) -> dict[str, Any]:
        """What a command printed. Fails where it is refused."""
        result = assay_on(self.run, *words, "--json")
        assert result.exception is None, (words, result.exception, result.output)
        return dict(json.loads(result.stdout))

    def refused(self, *words: str) -> AssayError:
        """The error that a command ends with."""
        result = assay_on(self.run, *words)
        assert isinstance(result.exception, AssayError), (words, result.exception, result.output)
        return result.exception

    def at(self) -> tuple[str, str]:
        return ("--gateway", self.gateway.address)

    def signed(self, who: int, amount: int) -> SignedVoucher:
        keys = ActorKeys("payer", self.keys[who])
        voucher = Voucher(keys.address, address_of(self.gateway), self.token, Wei(amount))
        return sign_voucher(keys, voucher, self.domain)

    def held(self, who: Address) -> int:
        return self.chain.ask(TokenContract(self.token).balance_of(who))


@contextmanager
def paid_run(folder: Path, payers: int, **terms: Any) -> Iterator[PaidRun]:
    """A run of its own node; payers with 1000 tokens each, whose keystores are `payer-0.json` and so on, the gateway's
    `gateway.json`. `terms`: of the charter, others than usual."""
    names = [*NAMES, *BESIDE, *ROUND_CONTRACTS.values(), *GOVERNOR.values(), *LEAVES.values(), "VoucherWallet"]
    with fresh_artifacts(folder / "artifacts", names), Anvil(genesis_time=START, accounts=payers + 2) as node:
        chain = Chain(node.url)
        sponsor, gateway, *keys = (Account.from_key(key) for key in node.dev_keys[: payers + 2])
        token, beacon = deploy_token(chain, sponsor), deploy_seed(chain, sponsor)
        made = real_charter(token=token, beacon=beacon, sponsor=address_of(sponsor), revenue_tokens=(token,))
        run = deploy_run(chain, sponsor, replace(made, name=mark("paid"), **terms))
        (folder / "password").write_text("secret\n")
        for name, key in [("gateway", gateway), *((f"payer-{number}", key) for number, key in enumerate(keys))]:
            if key is not gateway:
                chain.send(sponsor, TokenContract(token).mint(address_of(key), Wei(1000 * ETHER)))
            encrypted = Account.encrypt(key.key, "secret", iterations=1 << 10)
            (folder / f"{name}.json").write_text(json.dumps(encrypted))
        yield PaidRun(chain, run, folder, keys, gateway, VouchersContract(vouchers_place(run.address)))
