"""Two challengers of one claim on a node: its claimant answers once per position, and both games replay offline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from eth_account import Account
from eth_utils.address import to_checksum_address

from assay.bundle.document import Bundle, MinedTransaction, Reused, decode_bundle, encode_bundle, to_document
from assay.bundle.errors import BundleContradiction, BundleMalformed
from assay.bundle.export import export_bundle
from assay.bundle.replay import verify
from assay.bundle.signed import read_signed
from assay.protocol.digests import digest_list_hash, keccak
from assay.protocol.game.moves import PostDigests
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.claims import ClaimRef
from assay_ledger.agents.actions import Challenge
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.game_player import GamePlayer
from assay_ledger.bindings.game import DigestsPosted
from assay_ledger.chain.client import address_of
from assay_ledger.index.records import GameRecord
from assay_solver.cheats import cheat_named
from assay_verifier import attesting
from tests.harness.actors.world import ActorWorld, new_world, small_work
from tests.harness.actors.world import SharedChain as Scene
from tests.integration.actors.test_reorganizations import reorganize
from tests.integration.commands.test_bundle import altered, bent, leaves_of

FOUNDERS = {"first_seats": 2, "first_verifiers": 2}
ACCUSERS = ("vera", "viktor")


def disputed(stage: Scene, folder: Path) -> ActorWorld:
    """A round in which one solver lied and both verifiers know it; there is no challenge yet."""
    world = new_world(stage, folder, small_work(), rounds=1)
    world.solver("ada", **FOUNDERS)
    world.solver("mallory", cheat=cheat_named("bit-flip", 1), **FOUNDERS)
    for name in ACCUSERS:
        world.verifier(name, **FOUNDERS)
    for player in world.players.values():
        player.wealth = world.wealth(player.name)
    while not all(knows(world.players[name].agent) for name in ACCUSERS):
        step_until_revealed(world)
    assert not world.state.games
    return world


def knows(agent: Agent) -> list[ClaimRef]:
    """The claims that an auditor's own revealed results contradict."""
    return [ref for _, _, refs in attesting.false_claims(agent.see()) for ref in refs]


def step_until_revealed(world: ActorWorld) -> None:
    """Everybody acts, but a verifier that has revealed its leaves waits for the other."""
    acted = False
    for name, player in world.players.items():
        if name not in ACCUSERS or not knows(player.agent):
            acted |= player.agent.step()
    if not acted:
        now = world.stage.chain.head().timestamp
        times = [p.agent.deadline for p in world.players.values() if p.agent.deadline is not None]
        world.stage.chain.rpc("evm_mine", hex(min((t for t in times if t > now), default=now + 1)))


BISECTING = (Stage.STEPS, Stage.NODES)


def accuse(world: ActorWorld, name: str) -> None:
    """A verifier challenges what it knows to be false."""
    agent = world.players[name].agent
    agent.perform(Challenge(knows(agent)[0]), agent.see())


def lists_posted(world: ActorWorld) -> list[bytes]:
    """The hash of every list that a transaction carried for STEPS or NODES: those that stand under a position's key."""
    chain, game = world.stage.chain, world.run.game
    found = []
    for log in chain.events(DigestsPosted.search(game.address), world.run.first_block):
        if chain.calldata(log.transaction)[:4] == game.post_digests(0, []).data[:4]:
            found.append(log.event.list)
    return found


def bundles_of(world: ActorWorld) -> list[Bundle]:
    """The evidence of every game, through its file, each replayed to the verdict on chain."""
    bundles = [export_bundle(world.run, world.state, number) for number in sorted(world.state.games)]
    for bundle in bundles:
        found = verify(decode_bundle(encode_bundle(bundle)))
        assert found.verdict == world.state.games[bundle.game_id].verdict
    return bundles


def both_won(world: ActorWorld) -> list[GameRecord]:
    """The games of both verifiers, each won at an element."""
    games = world.verdicts()
    assert {world.name_of(g.challenger) for g in games} == set(ACCUSERS) and len(games) == 2
    assert all(g.convicted and g.outcome is Outcome.LEAF for g in games)
    return games


def test_a_challenger_who_comes_later_is_shown_what_the_first_was_shown(stage: Scene, tmp_path: Path) -> None:
    world = disputed(stage, tmp_path)
    accuse(world, "vera")
    world.settle(lambda state: any(g.stage is Stage.NODE for g in state.games.values()))
    lists = lists_posted(world)
    assert len(lists) == len(set(lists)) >= 2
    accuse(world, "viktor")
    # Nothing was sent for it, and it is the challenger's turn.
    game = world.run.games.game(2)
    assert (game.state.turn, game.state.posted) == (Side.CHALLENGER, lists[0])
    assert digest_list_hash(world.run.games.posted(game.state).digests) == lists[0]
    world.settle()
    first, second = both_won(world)
    assert lists_posted(world) == lists
    assert not first.reused and list(second.reused.values()) == lists
    assert len(first.moves) - len(second.moves) == len(lists)
    check_evidence(world, second)


def check_evidence(world: ActorWorld, second: GameRecord) -> None:
    """The second game replays from a file with the lists as their claimant signed them, and from no other file."""
    bundle = bundles_of(world)[1]
    assert [r.after for r in bundle.reused] == sorted(second.reused)
    assert {r.sent.sender for r in bundle.reused} == {second.defender}
    document = to_document(bundle)
    for path, _ in leaves_of(document["game"]["reused"]):
        # Order and time come from the chain; nothing that is signed says them.
        if path[-1] not in ("block", "time"):
            with pytest.raises((BundleMalformed, BundleContradiction)):
                verify(decode_bundle(altered(document, ("game", "reused", *path), bent)))
                pytest.fail(f"{path} may be anything")
    one, *others = bundle.reused
    own = bundle.transactions[1]
    for reused in (
        (),
        others,
        (*bundle.reused, one),
        (*bundle.reused, replace(one, after=len(bundle.transactions))),
        (replace(one, sent=others[0].sent), *others),
        (Reused(0, own), *others),
        (replace(one, sent=signed_by_another(bundle, one.sent)), *others),
    ):
        with pytest.raises((BundleMalformed, BundleContradiction)):
            verify(replace(bundle, reused=tuple(reused)))


def signed_by_another(bundle: Bundle, sent: MinedTransaction) -> MinedTransaction:
    """The same call to the same contract, by somebody who claims nothing."""
    stranger, fees = Account.create(), {"gas": 1, "maxFeePerGas": 1, "maxPriorityFeePerGas": 1}
    call = {"to": to_checksum_address(bundle.contracts.game), "data": "0x" + read_signed(sent.raw).data.hex()}
    signed = stranger.sign_transaction({"chainId": bundle.chain_id, "type": 2, "nonce": 0, "value": 0, **fees, **call})
    raw = bytes(signed.raw_transaction)
    return replace(sent, raw=raw, hash=keccak(raw), sender=address_of(stranger))


def test_two_who_come_at_once_are_answered_by_one_list_and_a_short_reply(stage: Scene, tmp_path: Path) -> None:
    world = disputed(stage, tmp_path)
    for name in ACCUSERS:
        accuse(world, name)
    world.settle()
    both_won(world)
    lists = lists_posted(world)
    assert len(lists) == len(set(lists))
    bundles = bundles_of(world)
    posts = [s.move for b in bundles for s in verify(b).steps if isinstance(s.move, PostDigests)]
    assert sum(bool(p.digests) for p in posts) == len(lists)
    assert any(not p.digests for p in posts)


def test_a_list_that_a_reorganization_took_back_is_known_to_nobody(stage: Scene, tmp_path: Path) -> None:
    world = disputed(stage, tmp_path)
    accuse(world, "vera")
    snapshot = stage.chain.rpc("evm_snapshot")
    world.settle(lambda state: any(g.stage is Stage.NODE for g in state.games.values()))
    gone = lists_posted(world)
    reorganize(world, snapshot)
    assert not lists_posted(world)
    accuse(world, "viktor")
    games = world.run.games
    for number in (1, 2):
        state = games.game(number).state
        assert state.turn is Side.DEFENDER and games.cached_list(state) is None
    viktor = world.players["viktor"].agent
    viktor.step()
    assert len(viktor.state.games) == 2 and not any(g.reused for g in viktor.state.games.values())
    world.settle()
    both_won(world)
    # The same claimant, the same work: the same lists, each posted once more.
    assert sorted(lists_posted(world)) == sorted(gone)
    bundles_of(world)


def test_the_agents_send_a_list_in_short_only_where_it_is_their_own(stage: Scene, tmp_path: Path) -> None:
    world = disputed(stage, tmp_path)
    for name in ACCUSERS:
        accuse(world, name)
    mallory = world.players["mallory"].agent
    player = mallory._player(mallory.see())  # type: ignore[attr-defined]
    assert isinstance(player, GamePlayer)
    one, two = (world.run.games.game(number) for number in (1, 2))
    move = player.next_move(one)
    assert isinstance(move, PostDigests) and move.digests
    assert player.move(one) is not None
    known = world.run.games.cached_list(two.state)
    assert known == digest_list_hash(move.digests)
    assert player.next_move(two) == PostDigests(())
    other = PostDigests((move.digests[-1], *move.digests[1:]))
    assert player._shortened(two.state, other) is other
