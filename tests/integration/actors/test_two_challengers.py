"""Two honest challengers of one false commitment: its claimant answers once per position, and both are made whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from assay.protocol.digests import digest_list_hash
from assay.protocol.errors import RejectedError
from assay.protocol.game.moves import AnyMove, PostDigests
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side, Stage
from assay.protocol.program.trace import Trace
from assay.protocol.types import Address
from assay_ledger.agents.game_player import GamePlayer
from assay_ledger.bindings.game import DigestsPosted
from assay_ledger.index.games import Game
from assay_ledger.keys.keystore import ActorKeys
from assay_solver.lies import Lie, flipped, output_source
from tests.harness.actors.claims import RoundClaims, aside, open_round
from tests.harness.actors.world import COMPUTE, SharedChain

PPM = 1_000_000


@dataclass
class TwoChallengers:
    """A round in which mallory lied and two strangers know it; there is no challenge yet."""

    claims: RoundClaims
    honest: Trace
    defender: GamePlayer
    challengers: list[tuple[ActorKeys, GamePlayer]]

    def accuse(self, number: int) -> int:
        """One of them challenges; its game."""
        keys, _ = self.challengers[number]
        return self.claims.challenge(keys, self.claims.ref("mallory"), self.honest.state_root(self.claims.steps))

    def game(self, number: int) -> Game:
        """A game as the chain has it."""
        return self.claims.made.run.games.game(number)

    def free(self) -> list[int]:
        """What the two can spend, in wei."""
        return [self.claims.made.free(keys.address) for keys, _ in self.challengers]

    def lists_posted(self) -> list[bytes]:
        """The hash of every list that a transaction carried for STEPS or NODES: those that positions keep."""
        chain, run = self.claims.made.chain, self.claims.made.run
        posts = chain.events(DigestsPosted.search(run.game.address), run.first_block)
        selector = run.game.post_digests(0, []).data[:4]
        return [log.event.list for log in posts if chain.calldata(log.transaction)[:4] == selector]

    def win(self, number: int, by: int) -> list[PostDigests]:
        """A game is played to the element, which is against mallory; the lists with which it replied."""
        moves: list[AnyMove] = []
        verdict = self.claims.play(
            number, self.defender, self.challengers[by][1], lambda game, move: moves.append(move)
        )
        assert verdict is not None and verdict.outcome is Outcome.LEAF
        assert verdict.loser == self.claims.mallory.address
        return [move for move in moves if isinstance(move, PostDigests)]


@pytest.fixture(scope="module")
def round_(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> RoundClaims:
    """One run for all tests."""
    claims = open_round(stage, tmp_path_factory.mktemp("disputed"))
    claims.add_stranger()
    claims.add_stranger()
    return claims


@pytest.fixture
def disputed(round_: RoundClaims) -> Iterator[TwoChallengers]:
    """Mallory has committed to a run with one false bit."""
    job = round_.job_of("mallory")
    node = output_source(job.program, 1)
    lie = Lie({(2, node): lambda data: flipped(job.program.specs[node], data)})
    false = COMPUTE.trace(job.program, job.lists, job.steps, lie)
    honest = COMPUTE.trace(job.program, job.lists, job.steps)
    with aside(round_):
        round_.commit(false)
        players = [(keys, round_.player(keys, honest)) for keys in round_.strangers]
        yield TwoChallengers(round_, honest, round_.player(round_.mallory, false), players)


def at_its_node(game: Game) -> bool:
    """Whether all lists of a game have been posted."""
    return game.state.stage is Stage.NODE


@pytest.mark.long
def test_a_challenger_who_comes_later_is_shown_what_the_first_was_shown(disputed: TwoChallengers) -> None:
    first = disputed.accuse(0)
    moves: list[str] = []
    disputed.claims.play(
        first, disputed.defender, disputed.challengers[0][1], lambda g, m: moves.append(m.kind.name), at_its_node
    )
    lists = disputed.lists_posted()
    assert len(lists) == len(set(lists)) == moves.count("POST_DIGESTS") >= 2
    second = disputed.accuse(1)
    # Nothing was sent for it, and it is the challenger's turn.
    game = disputed.game(second)
    assert (game.state.turn, game.state.posted) == (Side.CHALLENGER, lists[0])
    assert digest_list_hash(disputed.claims.made.run.games.posted(game.state).digests) == lists[0]
    disputed.win(second, by=1)
    disputed.win(first, by=0)
    assert disputed.lists_posted() == lists


def test_two_who_come_at_once_are_answered_by_one_list_and_a_short_reply(disputed: TwoChallengers) -> None:
    one, two = disputed.accuse(0), disputed.accuse(1)
    # Of two that wait for the same list, the first is sent it.
    (told,) = disputed.defender.calls_of([disputed.game(one), disputed.game(two)])
    assert told[0].game_id == one
    move = disputed.defender.next_move(disputed.game(one))
    assert isinstance(move, PostDigests) and move.digests
    assert disputed.defender.move(disputed.game(one)) is not None
    waiting = disputed.game(two)
    assert disputed.claims.made.run.games.cached_list(waiting.state) == digest_list_hash(move.digests)
    assert disputed.defender.next_move(waiting) == PostDigests(())
    # Another list than its own is not that one.
    other = PostDigests((move.digests[-1], *move.digests[1:]))
    assert disputed.defender._shortened(waiting.state, other) is other
    replies = disputed.win(two, by=1) + disputed.win(one, by=0)
    # No list is sent twice: what a game that waits has come to is answered in short, what comes later is shown.
    lists = disputed.lists_posted()
    assert len(lists) == len(set(lists)) == 1 + sum(bool(reply.digests) for reply in replies)
    assert [reply for reply in replies if not reply.digests] == [PostDigests(())]


def test_a_list_that_a_reorganization_took_back_is_known_to_nobody(disputed: TwoChallengers) -> None:
    chain, games = disputed.claims.made.chain, disputed.claims.made.run.games
    first = disputed.accuse(0)
    snapshot = chain.rpc("evm_snapshot")
    disputed.claims.play(first, disputed.defender, disputed.challengers[0][1], until=at_its_node)
    gone = disputed.lists_posted()
    assert chain.rpc("evm_revert", snapshot)
    chain.rpc("evm_mine")
    assert gone and not disputed.lists_posted()
    second = disputed.accuse(1)
    for number in (first, second):
        state = disputed.game(number).state
        assert state.turn is Side.DEFENDER and games.cached_list(state) is None
    disputed.win(second, by=1)
    # The same claimant, the same work: the same lists, each posted once more.
    assert disputed.lists_posted() == gone
    disputed.win(first, by=0)


def test_both_win_their_own_game_and_both_are_made_whole(disputed: TwoChallengers) -> None:
    before, e = disputed.free(), disputed.claims.made.run.charter.economics
    one, two = disputed.accuse(0), disputed.accuse(1)
    # Side by side, so that both have advanced refunds when the first conviction takes the lock.
    for number, by in ((one, 0), (two, 1)):
        disputed.claims.play(number, disputed.defender, disputed.challengers[by][1], until=at_its_node)
    assert all(disputed.game(number).state.advanced for number in (one, two))
    disputed.win(two, by=1)
    burned = disputed.claims.made.chain.ask(disputed.claims.made.run.vault.totals())[3]
    disputed.win(one, by=0)
    # One lock is taken once: what it burns is burned once, and its bounty pays for both defences.
    assert disputed.claims.made.chain.ask(disputed.claims.made.run.vault.totals())[3] == burned
    paid = sum(disputed.game(number).state.advanced for number in (one, two))
    bounty = e.seat_lock * e.third_bounty_ppm // PPM
    gains = [after - held for after, held in zip(disputed.free(), before, strict=True)]
    assert gains == [0, bounty - paid]
    assert disputed.claims.lock_of("mallory") == 0


def test_a_defender_withdrawing_in_mid_dispute_leaves_its_lock_to_the_verdict(disputed: TwoChallengers) -> None:
    made, mallory = disputed.claims.made, disputed.claims.mallory
    number = disputed.accuse(0)
    me, account = Address(mallory.address), mallory.account
    free, lock = made.free(me), disputed.claims.lock_of("mallory")
    with pytest.raises(RejectedError) as refused:
        made.chain.send(account, made.run.vault.request_exit(free + 1))
    assert refused.value.code == "InsufficientFree"
    made.chain.send(account, made.run.vault.request_exit(free))
    disputed.win(number, by=0)
    # Refunds of its replies came from the challenger's bond: an empty purse defends itself as well.
    leaving, _ = made.chain.ask(made.run.vault.exiting(me))
    assert leaving == free and 0 < made.free(me) < lock
    assert disputed.claims.lock_of("mallory") == 0
