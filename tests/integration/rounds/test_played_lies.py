"""Each kind of lie, played on the real contracts to one element, and who pays what, to the wei."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.economics.run_times import min_kept
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.rounds.bounties import pot_lock
from assay.protocol.run.claims import ClaimKind
from tests.harness.games import player, silent_after
from tests.harness.rounds.played_scenes import PlayedDispute, dispute
from tests.harness.rounds.played_world import PlayedWorld

KINDS = [
    pytest.param(ClaimKind.INTERVAL, 0, id="interval"),
    pytest.param(ClaimKind.UPDATE, 0, id="update"),
    pytest.param(ClaimKind.OUTER, 0, id="merge"),
    pytest.param(ClaimKind.ATTESTATION, 0, id="accumulator of an attestation"),
    pytest.param(ClaimKind.ATTESTATION, 1, id="update of an attestation"),
]
BY = [pytest.param(True, id="directly"), pytest.param(False, id="by commitment")]
PPM = 1_000_000
open_worlds: list[PlayedWorld] = []


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """The chain is as it was before."""
    yield
    while open_worlds:
        open_worlds.pop().end()


def begin(kind: ClaimKind, is_lie: bool, by_accuser: bool, part: int) -> tuple[PlayedWorld, PlayedDispute]:
    w, d = dispute(kind, is_lie, by_accuser, part)
    open_worlds.append(w)
    return w, d


def money(w: PlayedWorld, d: PlayedDispute) -> tuple[int, int, int, int, int]:
    """What defender and challenger can spend, what is locked behind the claim and in its pot, and what burned."""
    pot = w.vault.lock_amount(pot_lock(d.lock))
    return (
        w.vault.free_of(d.defender),
        w.vault.free_of(d.challenger),
        w.vault.lock_amount(d.lock),
        pot,
        w.vault.burned,
    )


def check_verdict(w: PlayedWorld, d: PlayedDispute, before: tuple[int, int, int, int, int], loser: Side) -> None:
    """Every wei is where the rules say; `before` is as the game was opened, with its bond locked."""
    state, bond = w.state(d.number), w.book.config.bond
    assert state.verdict is not None and state.verdict.side is loser
    after = money(w, d)
    defends, challenges, locked, pot, burned = (b - a for a, b in zip(before, after, strict=True))
    if loser is Side.DEFENDER:
        terms, lock = w.terms, before[2]
        bounty = lock * (terms.drawn_bounty_ppm if d.is_drawn else terms.third_bounty_ppm) // PPM
        own = state.advanced + w.book.config.kept if d.is_drawn else bounty
        assert (defends, challenges) == (state.advanced, bond - state.advanced + own)
        assert (locked, pot, burned) == (-lock, bounty - own, lock - bounty)
        assert challenges >= bond + min_kept(w.charter.chain, w.charter.clocks.arity)  # nor gas for being right
    else:
        rest = bond - state.advanced - state.held
        assert (defends, challenges) == (state.advanced + state.held + rest // 2, 0)
        assert (locked, pot, burned) == (0, 0, rest - rest // 2)
        assert burned > 0  # who plays against itself burns something
    w.check_money()


@pytest.mark.parametrize("is_lie", [pytest.param(True, id="false"), pytest.param(False, id="true")])
@pytest.mark.parametrize("by_accuser", BY)
@pytest.mark.parametrize(("kind", "part"), KINDS)
def test_every_claim_is_judged_at_one_element(kind: ClaimKind, part: int, by_accuser: bool, is_lie: bool) -> None:
    w, d = begin(kind, is_lie, by_accuser, part)
    before = money(w, d)
    arity = w.book.config.arity
    end = w.play(d.number, player(Side.DEFENDER, d.defence, arity), player(Side.CHALLENGER, d.attack, arity))
    assert end.verdict is not None and end.verdict.outcome is Outcome.LEAF
    assert end.verdict.expected != end.verdict.claimed if is_lie else end.verdict.expected == end.verdict.claimed
    check_verdict(w, d, before, Side.DEFENDER if is_lie else Side.CHALLENGER)


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("silent", [Side.DEFENDER, Side.CHALLENGER])
@pytest.mark.parametrize("by_accuser", BY)
@pytest.mark.parametrize(("kind", "part"), KINDS)
def test_who_is_silent_loses_whatever_is_true(
    kind: ClaimKind, part: int, by_accuser: bool, silent: Side, after: int
) -> None:
    w, d = begin(kind, silent is Side.CHALLENGER, by_accuser, part)
    before = money(w, d)
    arity = w.book.config.arity
    sides = {Side.DEFENDER: d.defence, Side.CHALLENGER: d.attack}
    players = {side: player(side, trace, arity) for side, trace in sides.items()}
    players[silent] = silent_after(players[silent], after)
    end = w.play(d.number, players[Side.DEFENDER], players[Side.CHALLENGER])
    assert end.verdict is not None and end.verdict.outcome is Outcome.DEFAULT
    check_verdict(w, d, before, silent)
