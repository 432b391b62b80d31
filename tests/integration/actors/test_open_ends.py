"""Runs that end, or are stopped, with games on a base and on a finding, a fine that waits for one and a secret that is
hidden: who is honest has all out, and nothing stays locked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.protocol.digests import keccak
from assay.protocol.economics.limits import PPM
from assay.protocol.rounds.duty_types import CallAnswer
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Digest, Round
from assay.sponsor.charters import AuditRates
from assay_ledger.agents import keeper
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.round_actions import Choice
from assay_ledger.agents.stalls import winds_down_at
from assay_ledger.bindings.challenges import ChallengesContract
from assay_ledger.bindings.game import GameContract
from assay_ledger.rounds.view import RunView
from assay_verifier.answering import OpenCall
from assay_verifier.cheats import AuditCheat
from assay_whistleblower.reporting import ReportAbsence
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain

RATES = AuditRates(audit_ppm=PPM, capacity=6, tickets=7)
SALT, OWN = Digest(keccak(b"salt")), Digest(keccak(b"another end"))
AUDITORS = ("vera", "viktor", "vlad")
HONEST = ("ada", "bob", *AUDITORS)


class Abstaining:
    """An actor that does not do some things, until it goes on."""

    def __init__(self, agent: Agent, *kinds: type[Choice]) -> None:
        self.agent, self.kinds, self.plain = agent, kinds, agent.candidates
        agent.candidates = self.candidates  # type: ignore[method-assign]

    def candidates(self, view: RunView) -> Iterator[Choice]:
        """See ActorLoop."""
        yield from (choice for choice in self.plain(view) if not isinstance(choice, self.kinds))

    def go_on(self) -> None:
        """It does everything again."""
        self.agent.candidates = self.plain  # type: ignore[method-assign]


def began(stage: SharedChain, folder: Path) -> WholeRun:
    """Two honest solvers, three honest auditors, one that hides its secrets, and cleo, who challenges a true root."""
    made = new_whole_run(stage, folder, seats=3, rounds=2, rates=RATES)
    for name in ("ada", "bob", "cleo"):
        made.solver(name)
    for name in AUDITORS:
        made.auditor(name, tickets=2, reports=True)
    made.auditor("mallory", cheat=AuditCheat.ABSENT)
    made.enrol()
    made.fund()
    made.launch()
    return made


def challenge_base(made: WholeRun, generation: int) -> None:
    """A game of cleo's on what ada opened."""
    cleo, view, round_ = made.players["cleo"].agent, made.view, Round(generation - 1)
    held = next(n for n, t in view.books.tenures.tenures.items() if t.holder == made.address("ada"))
    seat, root = view.books.tenures.tenures[held].seat, view.votes(generation).root
    assert root is not None
    made.chain.send(cleo.account, made.run.generations.prepare(round_, view.entries(round_)))
    ref = ClaimRef(ClaimKind.OUTER, round_, seat, 0, NO_ADDRESS, root)
    made.chain.send(cleo.account, GameContract(made.run.modules.game).challenge(ref))


def challenge_finding(made: WholeRun, name: Digest) -> None:
    """A game of cleo's on a finding, by her key alone: her solver has nothing to play it with."""
    cleo, run = made.players["cleo"].agent, made.run
    found = made.view.state.attestations[name]
    made.chain.send(cleo.account, run.attestations.prepare(name, found.finding, 0))
    ref = ClaimRef(ClaimKind.ATTESTATION, found.round, found.seat, 0, NO_ADDRESS, name)
    contract = ChallengesContract(run.modules.challenges)
    made.chain.send(cleo.account, contract.commit_challenge(challenge_commitment(ref, OWN, SALT, cleo.me)))
    made.chain.rpc("evm_mine", hex(made.chain.head().timestamp + run.charter.chain.reorg_depth + 1))
    made.chain.rpc("evm_mine")
    games = made.chain.ask(GameContract(run.modules.game).games())
    made.chain.send(cleo.account, contract.reveal_challenge(ref, OWN, SALT))
    assert made.chain.ask(GameContract(run.modules.game).games()) == games + 1


def in_time(answer: CallAnswer | None) -> bool:
    """Whether a call was answered, and not only its secret shown later."""
    return answer is not None and answer.in_time


def owes_fines(made: WholeRun, who: str, view: RunView) -> list[Digest]:
    """What somebody's tickets found that an epoch with fines called in vain."""
    away = {
        number
        for number, _ in view.tickets_of(made.address(who))
        for n, epoch in enumerate(view.epochs)
        if epoch.fines and view.is_called(number, n) and not in_time(view.answer_of(n, number))
    }
    return [name for name, found in view.state.attestations.items() if found.ticket in away]


def nothing_stays(made: WholeRun) -> None:
    """No lock is left but the escrow's rest, and nobody honest was convicted."""
    view = made.end()
    left = {owner for owner, _ in made.locks().values()}
    assert left <= {made.run.escrow.address}
    honest = {made.address(name) for name in HONEST}
    lost = {game.verdict.loser for game in view.games.values() if game.verdict is not None}
    assert view.games and all(game.is_over for game in view.games.values()) and honest.isdisjoint(lost)
    assert all(made.players[name].agent.is_finished(made.players[name].agent.see()) for name in HONEST)


def one_stays_away(made: WholeRun) -> tuple[str, Abstaining, list[Abstaining]]:
    """The first auditor that finds something answers no call any more, and nobody has it fined yet."""
    made.settle(lambda view: bool(view.state.attestations))
    who = next(name for name in AUDITORS if made.findings_of(name))
    away = Abstaining(made.players[who].agent, OpenCall, ReportAbsence)
    return who, away, [Abstaining(made.players[name].agent, ReportAbsence) for name in AUDITORS if name != who]


def has_its_fine_wait(made: WholeRun, who: str, silent: list[Abstaining]) -> None:
    """A game on its finding, and then its fine."""
    challenge_finding(made, owes_fines(made, who, made.view)[-1])
    for each in silent:
        each.go_on()
    made.settle(lambda view: bool(view.books.registry.debts))


@pytest.mark.long
def test_a_run_ends_with_a_base_in_dispute_and_a_fine_that_waits(stage: SharedChain, tmp_path: Path) -> None:
    made = began(stage, tmp_path)
    who, away, silent = one_stays_away(made)
    made.settle(lambda view: view.votes(2).root is not None)
    challenge_base(made, 2)
    made.settle(lambda view: bool(owes_fines(made, who, view)))
    has_its_fine_wait(made, who, silent)
    away.go_on()
    nothing_stays(made)
    view, e = made.view, made.run.charter.economics
    assert view.state.money.phase is RunPhase.OVER
    for name in ("ada", "bob"):
        earned = 2 * (made.run.charter.price + e.merge_pay)
        assert made.free(made.address(name)) - made.players[name].brought >= earned
    gained = made.free(made.address(who)) - made.players[who].brought
    assert gained >= len(made.findings_of(who)) * e.wage - sum(made.fines(who))
    assert made.findings_of(who) == made.wages(who) and made.fines(who)


def test_a_run_is_stopped_while_a_fine_waits_for_a_game(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = began(stage, tmp_path)
    who, away, silent = one_stays_away(made)
    made.settle(lambda view: bool(owes_fines(made, who, view)))
    for what in ("_epoch", "_beacon"):  # the beacon is dead
        monkeypatch.setattr(keeper, what, lambda view: iter(()))
    made.chain.rpc("evm_mine", hex(winds_down_at(made.view) - 1800))
    has_its_fine_wait(made, who, silent)
    view = made.settle(lambda view: view.state.money.is_stopped)
    assert any(not game.is_over for game in view.games.values()) and view.books.registry.debts
    away.go_on()
    nothing_stays(made)
    assert made.fines(who)
    assert {held.owner for held in made.view.books.registry.tickets.values()} <= {made.address("mallory")}
