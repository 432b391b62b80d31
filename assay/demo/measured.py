"""What is measured at the end of a demo: games, money, and how good the model became."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from eth_utils.address import to_checksum_address

from assay.demo.stage import TORCH_CACHE
from assay.protocol.game.state import Outcome
from assay.protocol.program.nodes import Family
from assay.protocol.types import Address, Digest
from assay.sponsor.cards import read_card, read_corpus
from assay_ledger.bindings.revenue import Claimed
from assay_ledger.bindings.token import TokenContract
from assay_ledger.bindings.vault import VaultContract
from assay_ledger.index.records import GameRecord

if TYPE_CHECKING:
    from torch import Tensor

    from assay_ledger.chain.client import Chain
    from assay_ledger.rounds.run import Run
    from assay_ledger.store.blobs import ArtifactStore

SAMPLE_CHARACTERS: Final = 200
EAGER_STEPS: Final = 25


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the model was before and after, in nats per character, with a text that each generates."""

    parameters: int
    loss_before: float
    loss_after: float
    letter_entropy: float
    sample_before: str
    sample_after: str
    eager_step_cpu: float
    """CPU seconds of one step in stock eager f32 PyTorch, one thread."""


@dataclass(frozen=True, slots=True)
class ReadLie:
    """A lie that was told under a bond. vault: where bonds lie; is_convicted: by the contract's own value."""

    vault: Address
    is_convicted: bool
    transactions: int


@dataclass(slots=True)
class PaidReading:
    """What a reader asked of the model, was answered and paid; amounts in wei."""

    contract: Address
    """Of the vouchers."""
    texts: list[str]
    deposited: int
    verified: int
    paid: int
    """To the gateway and the model's owners."""
    to_owners: int
    lie: ReadLie
    withdrawn: int = 0

    @property
    def rest(self) -> int:
        """Of the deposit, what was not spent."""
        return self.deposited - self.paid

    def document(self, run: Run) -> dict[str, Any]:
        """What `assay demo --json` says of it; the difference is what was made or lost, by what the contracts hold."""
        token = TokenContract(run.charter.token)
        held, bonded = (run.chain.ask(token.balance_of(at)) for at in (self.contract, self.lie.vault))
        totals = run.chain.ask(VaultContract(self.lie.vault).totals())
        return {
            "answers": len(self.texts),
            "verified": self.verified,
            "paid": self.paid,
            "to_owners": self.to_owners,
            "false_answers_convicted": int(self.lie.is_convicted),
            "conservation_difference": self.deposited - self.paid - self.withdrawn - held + sum(totals) - bonded,
        }


def measure_quality(
    environment: Mapping[str, str],
    store: ArtifactStore,
    run: Address,
    data: Digest,
    before: Sequence[Tensor],
    after: Sequence[Tensor],
) -> Quality:
    """Evaluates both weights, loaded into the stock PyTorch module, on the text that the run's card names."""
    kept = os.environ.get(TORCH_CACHE)
    os.environ[TORCH_CACHE] = environment[TORCH_CACHE]
    try:
        return _measure(store, run, data, before, after)
    finally:
        del os.environ[TORCH_CACHE]
        if kept is not None:
            os.environ[TORCH_CACHE] = kept


def _measure(
    store: ArtifactStore, run: Address, data: Digest, before: Sequence[Tensor], after: Sequence[Tensor]
) -> Quality:
    import torch

    from assay.training.evaluate import generate, validation_loss
    from assay.training.model import build_model
    from assay.training.state import Scalars
    from assay.training.step import initial_state, preset_step

    preset, corpus = read_corpus(store, read_card(store, run), data)
    model = build_model(preset, len(corpus.vocabulary))
    step = preset_step(preset, len(corpus.vocabulary))
    lists = initial_state(step, before, Scalars.of(corpus.train, learning_rate=preset.learning_rate))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    step(*lists)
    begin = time.process_time()
    for _ in range(EAGER_STEPS):
        lists = step(*lists)
    eager = (time.process_time() - begin) / EAGER_STEPS
    torch.set_num_threads(threads)
    return Quality(
        parameters=sum(t.numel() for t in before),
        loss_before=validation_loss(model, before, corpus),
        loss_after=validation_loss(model, after, corpus),
        letter_entropy=corpus.letter_entropy(),
        sample_before=generate(model, before, corpus, length=SAMPLE_CHARACTERS),
        sample_after=generate(model, after, corpus, length=SAMPLE_CHARACTERS),
        eager_step_cpu=eager,
    )


def ordered(games: Mapping[int, GameRecord]) -> list[GameRecord]:
    """Games by number."""
    return [games[game_id] for game_id in sorted(games)]


def slashed_entry(game: GameRecord, role: str) -> dict[str, Any]:
    """A lock that a conviction took; amounts in wei."""
    assert game.verdict_tx is not None
    return {
        "address": to_checksum_address(game.defender),
        "amount": game.taken,
        "role": role,
        "claim": "0x" + game.claim_id.hex(),
        "kind": game.outcome.name,
        "leaf_tx": "0x" + game.verdict_tx.hex(),
    }


def dispute_entry(chain: Chain, game: GameRecord) -> dict[str, Any]:
    """One game: its path in figures. `levels` counts the challenger's bisections and selections."""
    assert game.verdict is not None and game.verdict_tx is not None
    hashes = list(dict.fromkeys([game.opened_tx, *(m.tx_hash for m in game.moves), game.verdict_tx]))
    gas = {tx: _gas(chain, tx) for tx in hashes}
    family = game.verdict.family
    ends = {game.opened_tx} | ({game.verdict_tx} if game.outcome is Outcome.DEFAULT else set())
    selections = set(hashes) - ends
    return {
        "claim": "0x" + game.claim_id.hex(),
        "kind": game.ref.kind.name,
        "loser": to_checksum_address(game.verdict.loser),
        "levels": sum(m.mover == game.challenger and m.tx_hash in selections for m in game.moves),
        "leaf_family": Family(family).name.lower() if family in set(Family) else None,
        "transactions": len(hashes),
        "gas_total": sum(gas.values()),
        "gas_leaf": gas[game.verdict_tx],
        "ended_by": game.outcome.name,
        "verdict_tx": "0x" + game.verdict_tx.hex(),
    }


def claimed(run: Run, owners: Iterable[Address] = ()) -> dict[str, int]:
    """Wei of revenue paid out, to these owners and to others who claimed."""
    paid: dict[str, int] = {to_checksum_address(a): 0 for a in owners}
    for found in run.chain.events(Claimed.search(run.revenue.address), 0):
        owner = to_checksum_address(found.event.owner)
        paid[owner] = paid.get(owner, 0) + found.event.amount
    return paid


def conservation_difference(run: Run, revenue_paid: int) -> int:
    """Wei that vault and revenue hold beyond what their books say; 0 unless money was made or lost."""
    ask = run.chain.ask
    free, locked, leaving, burned = ask(run.vault.totals())
    books = free + locked + leaving + burned
    vault = ask(run.token.balance_of(run.vault.address)) - books
    held = ask(run.token.balance_of(run.revenue.address))
    return vault + held - (revenue_paid - sum(claimed(run).values()))


def _gas(chain: Chain, tx: bytes) -> int:
    return int(chain.read(lambda: chain.w3.eth.get_transaction_receipt(tx))["gasUsed"])  # type: ignore[arg-type]
