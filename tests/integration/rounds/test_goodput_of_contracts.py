"""Goodput played on the contracts in an in-process EVM: every call as on the model, and the same figure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.bench.goodput import Goodput, GoodputTerms, RoundShot
from assay.bench.goodput_model import SALT, ModelStage, round_terms
from assay.protocol.digests import ZERO, state_digest
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Digest, Round, Seat
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.samples import START, bits
from tests.harness.rounds.world import RoundWorld

TERMS = GoodputTerms(rounds=3, spread=0.03)


class ContractStage(ModelStage):
    """The model with the contracts beside it: a call is made on both, and what is seen is compared."""

    def __init__(self, terms: GoodputTerms, start: int) -> None:
        super().__init__(terms, start)
        self.world = RoundWorld(RoundChain(round_terms(terms)))
        self.holders = [self.world.add_person() for _ in range(terms.seats)]
        assert [self.world.join(who) for who in self.holders] == [""] * terms.seats

    def _call(self, contract: str, function: str, *arguments: object, seat: Seat | None, now: int) -> None:
        self.world.at(now)
        who = None if seat is None else self.holders[seat]
        assert self.world.refusal(contract, function, *arguments, who=who) == ""

    def begin(self, now: int) -> None:
        super().begin(now)
        self._call("RoundsBench", "begin", seat=None, now=now)

    def shot(self, round_: Round, now: int) -> RoundShot:
        shot = super().shot(round_, now)
        self.world.at(max(now, self.world.now))
        t0, mask_at, _, committed, *_ = self.world.call("Commitments", "roundOf", round_)
        assert (t0, mask_at, committed) == (shot.t0, shot.mask_at, len(shot.committed))
        assert self.world.call("Commitments", "holdUntil", round_, 0) == shot.hold_until
        assert self.world.call("Commitments", "mergeUntil", round_) == shot.merge_until
        assert self.world.call("Commitments", "countedOf", round_, 0)[0] == bits(shot.counted)
        return shot

    def commit(self, seat: Seat, round_: Round, base: Digest, units: int, update: Digest, now: int) -> None:
        super().commit(seat, round_, base, units, update, now)
        work = (units, ZERO, [ZERO, ZERO, ZERO], update)
        self._call("Commitments", "commit", round_, seat, seat + 1, base, work, seat=seat, now=now)

    def hold(self, seat: Seat, round_: Round, held: frozenset[Seat], now: int) -> None:
        acc = self._books.commitments.group_of(round_, 0).acc
        super().hold(seat, round_, held, now)
        self._call("Commitments", "hold", round_, 0, 1 << seat, acc, bits(held), seat=seat, now=now)

    def seal(self, seat: Seat, round_: Round, root: Digest, now: int) -> None:
        super().seal(seat, round_, root, now)
        over = self._books.generations.over_of(round_ + 1, now)
        seal = ids.seal_digest(round_, seat, state_digest((root, root)), over, SALT, self.holders[seat])
        self._call("Generations", "seal", round_, seat, seal, seat=seat, now=now)

    def open(self, seat: Seat, round_: Round, root: Digest, now: int) -> None:
        super().open(seat, round_, root, now)
        self._call("Generations", "open", round_, seat, root, root, SALT, seat=seat, now=now)
        assert self.world.call("Generations", "statusOf", round_ + 1) in (
            GenerationStatus.OPEN,
            GenerationStatus.MERGED,
        )


@pytest.mark.parametrize("delay", [0, 588], ids=["as-a-rule", "delays-in-full"])
def test_solvers_decisions_go_through_on_the_contracts_with_the_models_goodput(delay: int) -> None:
    terms = replace(TERMS, delay=delay)
    stage = ContractStage(terms, START)
    found = Goodput(stage, terms, START).run()
    assert found == Goodput(ModelStage(terms, START), terms, START).run()
    assert found.refused == {} and found.rounds == terms.rounds
    merged = [stage.world.call("Generations", "statusOf", g) for g in range(1, terms.rounds + 1)]
    assert merged == [GenerationStatus.MERGED] * terms.rounds
