"""A whole run with an honest and a lying solver and an auditor that will find the lie, for tests of what surrounds it.

It is played once, up to where both solvers have committed; every test plays on from there `aside`, and the chain is put
back. What the actors remember of blocks that are gone stays with them, as in any reorganization.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.protocol.digests import ZERO, keccak
from assay.protocol.game.players import Challenger
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.program.trace import Trace
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Digest, Round, Seat, Wei
from assay.sponsor.charters import AuditRates
from assay.sponsor.launching import deposit
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.game_player import encode_move
from assay_ledger.chain.client import address_of
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore
from assay_solver.cheats import CheatingSolver, solver_cheat_named
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import COMPUTE, ETHER, SharedChain

RATES = AuditRates(audit_ppm=1_000_000, capacity=10, shifts=5, drawn_bounty_ppm=1_000_000)
"""One ticket a shift, which is drawn for every commitment."""

HONEST = ("ada", "vera")


def launched_run(stage: SharedChain, folder: Path) -> WholeRun:
    """A run of one round of ada, who is honest, and mallory, whose second unit ends in a false bit; it is launched."""
    made = new_whole_run(stage, folder, seats=2, rounds=1, rates=RATES)
    made.solver("ada")
    made.solver("mallory", solver_cheat_named("false-step", 0))
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    return made


def disputed_run(stage: SharedChain, folder: Path) -> WholeRun:
    """The same once both have committed."""
    made = launched_run(stage, folder)
    made.settle(lambda view: len(view.works(Round(0))) == 2)
    return made


@contextmanager
def aside(made: WholeRun) -> Iterator[None]:
    """What happens here on chain has not happened afterwards; everybody's process ends with it."""
    snapshot = made.chain.rpc("evm_snapshot")
    try:
        yield
    finally:
        assert made.chain.rpc("evm_revert", snapshot)
        for name in made.players:
            made.restart(name)


def again(made: WholeRun, name: str, *, run: Run | None = None, store: BlobStore | None = None) -> Agent:
    """An actor's process starts anew over its folder, with a node or a store of its own."""
    player = made.players[name]
    old = player.agent
    old.close()
    options: dict[str, Any] = {"tickets": old.tickets_wanted} if isinstance(old, AuditorAgent) else {}
    if isinstance(old, CheatingSolver):
        options["cheat"] = old.cheat
    place = run or made.run, old.keys, store or made.store, made.folder / name
    player.agent = type(old)(*place, compute=COMPUTE, **options)
    return player.agent


def verdicts(view: RunView) -> list[GameRecord]:
    """Games that are over."""
    return [game for _, game in sorted(view.games.items()) if game.is_over]


def is_judged(view: RunView) -> bool:
    """Whether somebody was convicted for its work and no game is played any more."""
    return any(t.convicted_at for t in view.books.tenures.tenures.values()) and not any(
        not game.is_over for game in view.games.values()
    )


def check_judged(made: WholeRun, view: RunView) -> None:
    """Mallory lost its seat to the one element that it lied in, and nobody honest lost anything."""
    convicted = [t.holder for t in view.books.tenures.tenures.values() if t.convicted_at]
    assert convicted == [made.address("mallory")]
    games = verdicts(view)
    assert {(game.defender, game.ref.kind) for game in games} == {(made.address("mallory"), ClaimKind.INTERVAL)}
    assert [game.outcome for game in games if game.taken] == [Outcome.LEAF]
    assert {game.verdict.loser for game in games if game.verdict} == {made.address("mallory")}
    assert not any(t.convicted_at for t in view.books.registry.tickets.values()) and not made.fines("vera")
    assert made.wealth("ada") >= made.players["ada"].brought
    # Of the lock in dispute the game itself keeps a part until it is paid out.
    assert made.wealth("vera") > made.players["vera"].brought


# --- a stranger who lies about the honest


class Puppet:
    """Somebody with money and no role, who says that ada's work ends elsewhere, and plays that to the end."""

    def __init__(self, made: WholeRun) -> None:
        self.made, self.account = made, _rich(made)
        self.address = address_of(self.account)
        ada, view = made.players["ada"].agent, made.view
        seat = next(work.seat for work in view.works(Round(0)) if work.seat == _seat_of(made, "ada"))
        self.work = view.state.works[Round(0), seat]
        self.ref = ClaimRef(ClaimKind.INTERVAL, Round(0), seat)
        archive = ada.archive
        start = archive.start(Round(0), seat, archive.base(view, 0, COMPUTE)[0])
        steps = self.work.work.units * view.rules.steps_per_unit
        lie = solver_cheat_named("false-step", 0).step_lie(archive.step, view.rules.steps_per_unit)
        self.trace: Trace = COMPUTE.trace(archive.step, start, steps, lie)
        self.steps = steps

    def challenge(self) -> int:
        """Prepares ada's claim, commits to a challenge of it, and reveals that; returns the game's number."""
        run, chain, own = self.made.run, self.made.chain, self.trace.state_root(self.steps)
        made = self.work.work
        chain.send(self.account, run.commitments.prepare(self.ref.kind, self.ref.round, self.ref.seat, made))
        return self._challenge(self.ref, own)

    def challenge_attestation(self, name: Digest) -> int:
        """Says of the first part of an attestation that it is false; returns the game's number."""
        record = self.made.view.state.attestations[name]
        self.made.chain.send(self.account, self.made.run.attestations.prepare(name, record.finding, 0))
        ref = ClaimRef(ClaimKind.ATTESTATION, record.round, record.seat, 0, outer_root=name)
        return self._challenge(ref, Digest(b"\x55" * 32))

    def _challenge(self, ref: ClaimRef, own: Digest) -> int:
        run, chain = self.made.run, self.made.chain
        commitment = challenge_commitment(ref, own, ZERO, self.address)
        chain.send(self.account, run.challenges.commit_challenge(commitment))
        chain.rpc("anvil_mine", hex(3))
        chain.send(self.account, run.challenges.reveal_challenge(ref, own, ZERO))
        return run.games.count()

    def select(self, game_id: int) -> bool:
        """Makes its move where it is its turn; False once the game is over."""
        run = self.made.run
        game = run.games.game(game_id)
        if game.state.is_over:
            return False
        if game.state.turn is Side.CHALLENGER:
            move = Challenger(self.trace, run.charter.clocks.arity).next_move(game.state, run.games.posted(game.state))
            assert move is not None
            self.made.chain.send(self.account, encode_move(run.game, game_id, move))
        return True


def _seat_of(made: WholeRun, name: str) -> Seat:
    who = made.address(name)
    return next(t.seat for t in made.view.books.tenures.tenures.values() if t.holder == who)


def _rich(made: WholeRun) -> LocalAccount:
    """An account with coin for gas, and stake for a few games."""
    account, e = Account.from_key(keccak(bytes(made.run.address) + b"puppet")), made.run.charter.economics
    amount = Wei(10 * (e.challenge_bond + e.challenge_deposit))
    made.chain.transfer(made.stage.sponsor, account.address, 10 * ETHER)
    made.chain.send(account, made.run.token.mint(address_of(account), amount))
    deposit(made.chain, account, made.run, amount)
    return account
