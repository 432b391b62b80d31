"""Whole runs in which anybody may lie: random games on everything that is claimed, interleaved, on real contracts.

Who tells the truth and answers in time wins every game, and loses nothing; no token appears; nothing is left behind.
"""

from __future__ import annotations

from collections import Counter

import pytest

from assay.protocol.errors import RejectedError
from assay.protocol.game.book import game_lock
from assay.protocol.game.table import Side
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.ids import tenure_lock
from assay.protocol.rounds.ticket_types import ticket_lock
from assay.protocol.run.claims import ClaimKind
from tests.harness.contracts.game_chain import ref_tuple
from tests.harness.rounds.random_disputes import RandomDisputes

SEEDS = range(60)
PLAYS_AT_ONCE = 10
RUN_CLAIMS = set(ClaimKind) - {ClaimKind.NONE, ClaimKind.ANSWER}
"""Answers are claimed beside a run."""


@pytest.mark.parametrize(
    "first",
    [
        *SEEDS[: 3 * PLAYS_AT_ONCE : PLAYS_AT_ONCE],
        *(pytest.param(seed, marks=pytest.mark.long) for seed in SEEDS[3 * PLAYS_AT_ONCE :: PLAYS_AT_ONCE]),
    ],
)
@pytest.mark.gate_takes(1)
def test_the_honest_win_whatever_liars_play_beside_them(first: int) -> None:
    judged: Counter[tuple[ClaimKind, Side]] = Counter()
    for seed in range(first, first + PLAYS_AT_ONCE):
        play = RandomDisputes(seed)
        try:
            play.run()
            check(play)
        finally:
            play.world.end()
        judged.update((g.kind, play.loser(g)) for g in play.games)
    print(first, dict(judged))
    assert {kind for kind, _ in judged} == RUN_CLAIMS
    assert {side for _, side in judged} == {Side.DEFENDER, Side.CHALLENGER}


def check(play: RandomDisputes) -> None:
    """What must hold when all games are over."""
    w = play.world
    w.check_money()
    for g in play.games:
        state = w.state(g.number)
        assert w.vault.lock_amount(game_lock(g.number)) == 0
        if g.is_silent:
            continue
        assert play.loser(g) is (Side.CHALLENGER if g.is_true else Side.DEFENDER), (play.seed, g.number)
        assert state.advanced + state.held <= w.book.config.bond // 2
    for who, gain in play.gains_of_honest_challengers().items():
        assert gain >= 0, (play.seed, who.hex())
    guilty = play.guilty_locks()
    for who, tenure in w.tenures.items():
        assert (w.vault.lock_amount(tenure_lock(tenure)) == 0) == (tenure_lock(tenure) in guilty), who.hex()
    for ticket in w.run.tickets.tickets:
        convicted = w.run.tickets.tickets[ticket].convicted_at != 0
        assert convicted == (ticket_lock(ticket) in guilty)
    tried = [a for a in w.run.duties.attestations.accusations.values() if a.status is AccusationStatus.TRIED]
    assert tried == []


def test_a_challenge_of_who_may_not_is_refused_alike() -> None:
    play = RandomDisputes(0)
    w = play.world
    try:
        play.begin()
        stranger = w.add_person()
        (ref, *_), *_ = play.claims_of_work()
        with pytest.raises(RejectedError, match="MayNotChallenge"):
            w.open_direct(stranger, ref)
    finally:
        w.end()


def test_nobody_opens_a_game_in_the_name_of_somebody_else() -> None:
    """Attack: a game with another's bond, which it never plays."""
    play = RandomDisputes(0)
    w = play.world
    try:
        play.begin()
        victim, thief = w.add_person(), w.add_person()
        ref, _, _, known = next(play.claims_of_work())
        args = (ref_tuple(ref), "0x" + victim.hex(), known.state_root(known.steps))
        assert w.refusal("Game", "openFor", *args, who=thief) == "NotChallenges"
        assert w.call("Game", "games") == 0
    finally:
        w.end()
