"""What the owners of a run's shares can decide, and what nobody can: on the model and the contracts at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.digests import keccak
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.decisions import Decision, ProposalState, Verb, described, proposed
from assay.protocol.rounds.governor import GRACE
from assay.protocol.types import Address
from tests.harness.contracts.harness import Reverted
from tests.harness.rounds.charters import changed
from tests.harness.rounds.governed_world import DEMOCRATIC, PAUSE, SUNSET, GovernedWorld
from tests.harness.rounds.money_scenes import final_round, settle
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.stage import text

DAY = 86_400
TERMS = DEMOCRATIC.governance
GATEWAY = Address((0x6A7E).to_bytes(20, "big"))


@pytest.fixture
def world() -> Iterator[GovernedWorld]:
    """A run that nobody has funded yet, and whose charter names governance."""
    made = GovernedWorld()
    try:
        yield made
        made.check_money()
        made.check_votes()
    finally:
        made.end()


# --- who may speak for the run


def test_nobody_proposes_before_a_round_is_final_and_enough_shares_have_vested(world: GovernedWorld) -> None:
    people = world.start()
    assert world.propose(people[0], PAUSE) == "GovernorInsufficientProposerVotes"
    assert world.mature(0) == world.mature(1) == "NotMature"
    r = final_round(world, people)
    # The genesis is final and shows nothing.
    assert world.mature(0) == "NotMature"
    assert world.mature(r + 2) == "NotMature"
    settle(world, r, people)
    world.tick(world.charter.timing.vesting)
    grants = [name for name, g in world.run.grants.grants.items() if g.owner == people[0] and g.tenure]
    for name in grants:
        assert world.release_grant(name) == ""
    world.delegate(people[0], people[0])
    world.tick(TERMS.voting_delay + 1)
    assert world.propose(people[0], PAUSE) == "TooEarlyToGovern"
    assert world.mature(r + 1) == ""
    # One seat's work is less than what three seats of the launch earn at the least.
    assert world.run.grants.token.past_supply(world.now) == 60 * ETHER < world.governor.least_vested
    assert world.propose(people[0], PAUSE) == "TooEarlyToGovern"
    for name, grant in list(world.run.grants.grants.items()):
        if grant.tenure and not grant.done:
            assert world.release_grant(name) == ""
    # In the same second nothing has vested for a second yet.
    assert world.propose(people[0], PAUSE) == "TooEarlyToGovern"
    world.tick(1)
    assert world.propose(people[0], PAUSE) == ""


def test_shares_alone_do_not_govern_until_somebody_shows_a_final_round(world: GovernedWorld) -> None:
    people = world.owners(shown=False)
    assert world.run.grants.token.past_supply(world.now) >= world.governor.least_vested
    assert world.propose(people[0], PAUSE) == "TooEarlyToGovern"
    assert world.mature(1) == world.mature(1) == ""
    assert world.propose(people[0], PAUSE) == ""


def test_a_whale_needs_a_quorum_of_what_governs_at_the_least() -> None:
    charter = changed(DEMOCRATIC, "governance", quorum_ppm=1_000_000)
    world = GovernedWorld(charter)
    try:
        people = world.owners()
        assert world.propose(people[0], PAUSE) == ""
        world.tick(TERMS.voting_delay + 1)
        number = world.id_of(PAUSE)
        for who in people[:-1]:
            assert world.vote(who, number) == ""
        supply = world.run.grants.token.past_supply(world.now)
        assert world.governor.quorum(world.governor.proposals[number].snapshot) == supply
        world.tick(TERMS.voting_period)
        assert world.governor.state(number, world.now) is ProposalState.DEFEATED
        assert world.queue(PAUSE) == "GovernorUnexpectedProposalState"
        world.check_votes()
    finally:
        world.end()


def test_a_hundredth_of_what_governs_proposes_once_held_for_a_voting_delay(world: GovernedWorld) -> None:
    people = world.owners()
    least = -(-world.governor.least_vested // 100)
    enough, short = world.add_person(ETHER), world.add_person(ETHER)
    for who, amount in ((enough, least), (short, least - 1)):
        world.delegate(who, who)
        assert world.transfer(people[1], who, amount) == ""
    world.tick(TERMS.voting_delay)
    assert world.propose(enough, PAUSE) == "GovernorInsufficientProposerVotes"
    world.tick(1)
    assert world.propose(short, PAUSE) == "GovernorInsufficientProposerVotes"
    assert world.propose(enough, PAUSE) == ""


def test_shares_that_move_between_the_snapshots_vote_for_nobody(world: GovernedWorld) -> None:
    people = world.owners()
    thief = world.add_person(ETHER)
    world.delegate(thief, thief)
    had = world.run.grants.token.balances[people[1]]
    assert world.propose(people[0], PAUSE) == ""
    number, snapshot = world.id_of(PAUSE), world.governor.proposals[world.id_of(PAUSE)].snapshot
    # Attack: borrow shares over the snapshot alone. They are the lender's at the proposal, and no one's at both.
    world.at(snapshot - 1)
    assert world.transfer(people[1], thief, had) == ""
    world.at(snapshot + 1)
    assert world.transfer(thief, people[1], had) == ""
    for who in (people[1], thief):
        assert world.vote(who, number) == ""
        assert world.governor.weight(who, snapshot) == 0
        assert world.call("RunGovernor", "getVotes", text(who), snapshot) == 0
    assert world.vote(people[1], number) == "GovernorAlreadyCastVote"
    assert world.vote(people[2], number, support=3) == "GovernorInvalidVoteType"
    assert world.governor.proposals[number].weights == [0, 0, 0]


def test_who_bought_a_voting_delay_ago_votes_with_it_and_a_second_later_does_not(world: GovernedWorld) -> None:
    people = world.owners()
    buyer, late = world.add_person(ETHER), world.add_person(ETHER)
    for who in (buyer, late):
        world.delegate(who, who)
    half = world.run.grants.token.balances[people[1]] // 2
    assert world.transfer(people[1], buyer, half) == ""
    # Proposed in the same second: what counts is the end of it, and a second later is too late.
    assert world.propose(people[0], PAUSE) == ""
    world.tick(1)
    assert world.transfer(people[1], late, half) == ""
    snapshot = world.governor.proposals[world.id_of(PAUSE)].snapshot
    world.at(snapshot + 1)
    for who, weight in ((buyer, half), (late, 0), (people[1], 0)):
        assert world.governor.weight(who, snapshot) == weight
        assert world.call("RunGovernor", "getVotes", text(who), snapshot) == weight
        assert world.vote(who, world.id_of(PAUSE)) == ""
    assert world.call("RunGovernor", "getVotes", text(buyer), snapshot) == half


def test_a_vote_begins_after_its_snapshot_and_ends_with_its_last_second(world: GovernedWorld) -> None:
    people = world.owners()
    assert world.vote(people[0], world.id_of(PAUSE)) == "GovernorNonexistentProposal"
    assert world.propose(people[0], PAUSE) == ""
    assert world.propose(people[0], PAUSE) == "GovernorUnexpectedProposalState"
    number, proposal = world.id_of(PAUSE), world.governor.proposals[world.id_of(PAUSE)]
    world.at(proposal.snapshot)
    assert world.vote(people[0], number) == "GovernorUnexpectedProposalState"
    assert world.withdraw_proposal(people[1], PAUSE) == "GovernorUnableToCancel"
    world.at(proposal.snapshot + 1)
    assert world.withdraw_proposal(people[0], PAUSE) == "GovernorUnableToCancel"
    assert world.vote(people[0], number) == ""
    world.at(proposal.deadline)
    assert world.queue(PAUSE) == "GovernorUnexpectedProposalState"
    assert world.vote(people[1], number) == ""
    world.at(proposal.deadline + 1)
    assert world.vote(people[2], number) == "GovernorUnexpectedProposalState"
    assert world.execute(PAUSE) == "GovernorUnexpectedProposalState"
    assert world.queue(PAUSE) == ""
    assert proposal.eta == world.now + TERMS.timelock
    world.at(proposal.eta - 1)
    assert world.execute(PAUSE) == "TimelockRuns"
    world.at(proposal.eta)
    assert world.execute(PAUSE) == ""
    assert world.execute(PAUSE) == "GovernorUnexpectedProposalState"


def test_a_proposal_is_withdrawn_by_its_proposer_before_the_vote(world: GovernedWorld) -> None:
    people = world.owners()
    assert world.propose(people[0], SUNSET) == ""
    assert world.withdraw_proposal(people[0], SUNSET) == ""
    world.tick(TERMS.voting_delay + 1)
    assert world.vote(people[0], world.id_of(SUNSET)) == "GovernorUnexpectedProposalState"


def test_a_proposal_that_names_its_proposer_is_made_and_taken_back_by_nobody_else(world: GovernedWorld) -> None:
    """Attack: whoever sees a proposal in the pool makes it first, and takes it back: it can never be made again."""
    owner, rival = world.owners()[:2]
    assert world.propose(rival, SUNSET, "why") == world.withdraw_proposal(rival, SUNSET, "why") == ""
    assert world.propose(owner, SUNSET, "why") == "GovernorUnexpectedProposalState"
    for named in (described("why", owner), described("", owner), described("why", owner)[:-40] + owner.hex().upper()):
        assert world.propose(rival, SUNSET, named) == "GovernorRestrictedProposer"
    for named in (described("why", owner), described("", owner)):
        assert world.propose(owner, SUNSET, named) == ""
    # What only looks like a mark restricts nobody.
    for free in (described("why", owner) + "\n", described("why", owner)[:-1], "#proposer=0x" + "g" * 40):
        assert world.propose(rival, SUNSET, free) == ""


def test_a_decision_expires_where_nobody_queues_or_executes_it_in_time(world: GovernedWorld) -> None:
    people = world.owners()
    for label in ("queued", "late to queue"):
        assert world.propose(people[0], PAUSE, label) == ""
    world.tick(TERMS.voting_delay + 1)
    for label in ("queued", "late to queue"):
        for who in people:
            assert world.vote(who, world.id_of(PAUSE, label)) == ""
    deadline = world.governor.proposals[world.id_of(PAUSE, "queued")].deadline
    world.at(deadline + GRACE)
    assert world.queue(PAUSE, "queued") == ""
    world.tick(1)
    assert world.queue(PAUSE, "late to queue") == "GovernorUnexpectedProposalState"
    world.check_votes()
    world.at(world.governor.proposals[world.id_of(PAUSE, "queued")].eta + GRACE + 1)
    assert world.execute(PAUSE, "queued") == "GovernorUnexpectedProposalState"
    assert world.governor.state(world.id_of(PAUSE, "queued"), world.now) is ProposalState.EXPIRED


def test_coins_sent_along_with_a_decision_are_refused(world: GovernedWorld) -> None:
    """OpenZeppelin takes them for what a decision sends on, and none here sends any: nobody could take them out."""
    people = world.owners()
    assert world.propose(people[0], PAUSE) == ""
    world.tick(TERMS.voting_delay + 1)
    for who in people:
        assert world.vote(who, world.id_of(PAUSE)) == ""
    world.tick(TERMS.voting_period)
    assert world.queue(PAUSE) == ""
    world.tick(TERMS.timelock)
    targets, values, calls = proposed(world.governor.place, PAUSE)
    governor, arguments = world.chain.contracts["RunGovernor"], ([text(t) for t in targets], values, calls, keccak(b""))
    with pytest.raises(Reverted, match="GovernorDisabledDeposit"):
        governor.call("execute", *arguments, caller=text(people[0]), value=1)
    assert world.execute(PAUSE) == ""


def test_votes_against_defeat_and_abstentions_only_fill_the_quorum(world: GovernedWorld) -> None:
    people = world.owners()
    labels = {"tie": (1, 0), "abstained": (2, 2), "carried": (1, 2)}
    for label in labels:
        assert world.propose(people[0], PAUSE, label) == ""
    world.tick(TERMS.voting_delay + 1)
    for label, supports in labels.items():
        for who, support in zip(people, supports, strict=False):
            assert world.vote(who, world.id_of(PAUSE, label), support) == ""
    world.tick(TERMS.voting_period)
    ends = {label: world.governor.state(world.id_of(PAUSE, label), world.now) for label in labels}
    wanted = (ProposalState.DEFEATED, ProposalState.DEFEATED, ProposalState.SUCCEEDED)
    assert tuple(ends.values()) == wanted


@pytest.mark.parametrize(
    "verb",
    ["pause(uint48)", "resume()", "sunset()", "setPrice(uint32)", "list(address,bool)", "dismissGuardian()",
     "nameSuccessor(address)", "relay(address,uint256,bytes)"],
)  # fmt: skip
def test_nobody_calls_by_itself_what_only_a_vote_may(world: GovernedWorld, verb: str) -> None:
    name = verb[: verb.index("(")]
    values = {"uint48": DAY, "uint32": 600_000, "address": text(GATEWAY), "bool": True, "uint256": 0, "bytes": b""}
    arguments = [values[kind] for kind in verb[verb.index("(") + 1 : -1].split(",") if kind]
    for who in (world.sponsor, world.guardian):
        with pytest.raises(Reverted, match="GovernorOnlyExecutor"):
            world.call("RunGovernor", name, *arguments, who=who)


def test_a_proposal_calls_nothing_but_one_decision_of_the_governor_itself(world: GovernedWorld) -> None:
    people = world.owners()
    at, vault = text(world.governor.place), text(world.run.escrow.place)
    sunset, relay = SUNSET.calldata, bytes.fromhex("c28bc2fa") + bytes(96)
    wrong = [
        ([vault], [0], [sunset]),
        ([at], [1], [sunset]),
        ([at, at], [0, 0], [sunset, sunset]),
        ([at], [0], [relay]),
        ([at], [0], [b""]),
        ([at], [0], [sunset[:3]]),
        ([at], [0], [sunset + bytes(32)]),
        ([at], [0], [PAUSE.calldata[:-1]]),
        ([at], [0], [Decision(Verb.LIST, (GATEWAY, True)).calldata + b"\0"]),
        ([at], [0, 0], [sunset]),
        ([], [], []),
    ]
    for targets, values, calls in wrong:
        with pytest.raises(Reverted, match="NotADecision"):
            world.call("RunGovernor", "propose", targets, values, calls, "", who=people[0])
