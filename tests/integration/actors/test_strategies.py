"""Strategies alone, without chain or store: who may do what when, at any time and for any role."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.digests import keccak
from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.charter import Charter, ProgramRef
from assay.protocol.run.claims import AttestationLeaf, ClaimKind, ClaimRef
from assay.protocol.run.schedule import Times
from assay.protocol.types import Address, Digest, Role, Round, Seat, Wei
from assay.sponsor.charters import Genesis, make_charter
from assay_ledger.agents import keeper
from assay_ledger.agents.actions import (
    Action,
    Attest,
    Challenge,
    Commit,
    CommitChallenge,
    Defer,
    DrawSeed,
    DrawWhistleSeed,
    EndOverdue,
    Join,
    OpenRound,
    Play,
    PostOuter,
    Receipt,
    Replay,
    RevealDraw,
    RevealLeaves,
    SettleDuties,
    SettleWork,
    Train,
    describe,
)
from assay_ledger.chain.client import Head
from assay_ledger.index.records import (
    AttendanceRecord,
    AttesterRecord,
    CommitmentRecord,
    GameRecord,
    RoundRecord,
    RunState,
)
from assay_ledger.index.view import Facts, Leaf, Memory, OuterStep, RunView, Trained, turn_of
from assay_solver import strategy as solving
from assay_solver.cheating import as_cheat
from assay_solver.cheats import Silent
from assay_verifier import attesting
from assay_verifier import strategy as verifying
from assay_verifier.cheats import without_accusations
from assay_whistleblower import strategy as whistling
from tests.harness.actors.world import small_work

T0 = 1_000_000


def digest(label: str) -> Digest:
    return keccak(label.encode())


def person(name: str) -> Address:
    return Address(name.encode().ljust(20, b"."))


ADA, BOB, VERA, VIKTOR, WILMA = (person(n) for n in ("ada", "bob", "vera", "viktor", "wilma"))


def make() -> tuple[Charter, Facts]:
    work = small_work()
    genesis = Genesis(
        step=ProgramRef.of(work.step),
        update=ProgramRef.of(work.update),
        outer=ProgramRef.of(work.outer),
        parameters=digest("parameters"),
        momentum=digest("momentum"),
        zero_optimizer=digest("blank"),
        zero_update=digest("zero"),
        data=digest("data"),
        data_length=512,
        inner_steps=10,
        learning_rate=0x3D4CCCCD,
    )
    charter = make_charter(
        genesis, name="pure", sponsor=person("sponsor"), token=person("token"), seed=person("seed"), now=T0, rounds=9
    )
    return charter, Facts(31337, person("charter"), charter.run, charter)


CHARTER, FACTS = make()


def times(t0: int = T0) -> Times:
    w = CHARTER.windows
    t1 = t0 + w.commit
    receipts = t1 + w.receipt
    t2 = receipts + w.seed_delay
    t3, t4 = t2 + w.attest, t2 + w.attest + w.draw
    t5 = t4 + w.whistle
    leaves = t5 + w.reveal
    return Times(t0, t1, receipts, t2, t3, t4, t5, leaves, leaves + w.reveal + 1, leaves + w.reveal + 1 + w.challenge)


TIMES = times()


def commitment(seat: int, solver: Address) -> CommitmentRecord:
    roots = tuple(digest(f"{seat} {j}") for j in range(CHARTER.training.intervals + 1))
    ends = tuple(digest(f"{seat} end {j}") for j in range(3))
    made = CommitmentRecord(
        Seat(seat), solver, digest(f"{seat}"), FACTS.genesis, roots, ends, digest(f"{seat} update"), b""
    )
    made.complete = True
    return made


def state(now: int, committed: bool = True) -> RunState:
    """One round with two solvers, two verifiers, one whistleblower; nothing audited yet."""
    made = RunState(Head(50, now))
    made.holders = {Seat(0): ADA, Seat(1): BOB}
    for who, role in ((VERA, Role.VERIFIER), (VIKTOR, Role.VERIFIER), (WILMA, Role.WHISTLEBLOWER)):
        made.attesters[who] = AttesterRecord(who, role, Wei(100), Round(0), b"")
    record = RoundRecord(Round(0), TIMES, (ADA, BOB, *[None] * 6))
    if committed:
        record.commitments = {Seat(0): commitment(0, ADA), Seat(1): commitment(1, BOB)}
    made.rounds = [record]
    return made


def view(me: Address, now: int, made: RunState | None = None, memory: Memory | None = None) -> RunView:
    return RunView(FACTS, me, now, 50, state(now) if made is None else made, Memory() if memory is None else memory)


def audited(now: int, lies: tuple[tuple[int, int], ...] = ()) -> tuple[RunState, Memory]:
    """Vera has revealed a leaf for every duty, of which some differ from the claim."""
    made = state(now)
    record = made.rounds[0]
    record.seed, record.whistle_seed = digest("seed"), digest("whistle")
    seen = view(VERA, now, made)
    attendance = AttendanceRecord(Role.VERIFIER, digest("root"), b"y" * 256)
    for duty in seen.duties_of(record):
        false = (duty.seat, duty.number) in lies
        attendance.leaves[duty.seat, duty.number] = digest("other") if false else duty.y
    record.attendance[VERA] = attendance
    return made, Memory()


def all_actions(me: Address, now: int, made: RunState, memory: Memory) -> list[Action]:
    """What every strategy would do in this person's place."""
    seen = view(me, now, made, memory)
    return [
        *solving.candidates(seen, solving.SolverPlan()),
        *verifying.candidates(seen, verifying.VerifierPlan()),
        *whistling.candidates(seen, whistling.WhistleblowerPlan()),
    ]


def drawn_memory(me: Address, made: RunState) -> Memory:
    """A memory in which everything is drawn, computed and bound."""
    seen = view(me, 0, made)
    duties = tuple(sorted(seen.duties_of(made.rounds[0]), key=lambda d: (d.id, d.number)))
    memory = Memory(y={Round(0): b"y" * 256}, duties={Round(0): duties})
    memory.results = {(seen.program_of(d), d.x): d.y for d in duties}
    memory.leaves[Round(0)] = tuple(Leaf(d.seat, AttestationLeaf(d.id, d.number, d.y, digest("salt"))) for d in duties)
    return memory


@given(st.integers(T0, TIMES.challenge_until + 10_000), st.sampled_from([ADA, BOB, VERA, VIKTOR, WILMA]))
def test_nothing_is_done_outside_its_window(now: int, me: Address) -> None:
    made = state(now)
    record = made.rounds[0]
    record.seed = digest("seed") if now > TIMES.t2 else None
    record.whistle_seed = digest("whistle") if now > TIMES.t4 else None
    memory = drawn_memory(me, made)
    if now > TIMES.t3 and me in made.attesters:
        role = made.attesters[me].role
        record.attendance[me] = AttendanceRecord(role, digest("root"), b"y" * 256 if now > TIMES.t5 else None)
    is_whistleblower = me == WILMA
    windows: dict[type, tuple[int, int]] = {
        Receipt: (TIMES.t0, TIMES.receipts_until),
        DrawSeed: (TIMES.t2, TIMES.t3),
        DrawWhistleSeed: (TIMES.t4, TIMES.t5),
        Attest: (TIMES.t4, TIMES.t5) if is_whistleblower else (TIMES.t2, TIMES.t3),
        RevealDraw: (TIMES.t4, TIMES.t5) if is_whistleblower else (TIMES.t3 + 1, TIMES.t4),
        RevealLeaves: (TIMES.t5 + 1, TIMES.t7) if is_whistleblower else (TIMES.t5 + 1, TIMES.leaves_until),
        Challenge: (TIMES.t5 + 1, TIMES.challenge_until),
        PostOuter: (TIMES.t7, 1 << 62),
        OpenRound: (TIMES.t7, 1 << 62),
        SettleWork: (TIMES.challenge_until + 1, 1 << 62),
        SettleDuties: (TIMES.challenge_until + 1, 1 << 62),
    }
    role_of = solving if me in (ADA, BOB) else whistling if is_whistleblower else verifying
    plan = {
        solving: solving.SolverPlan(),
        whistling: whistling.WhistleblowerPlan(),
        verifying: verifying.VerifierPlan(),
    }[role_of]
    for action in role_of.candidates(view(me, now, made, memory), plan):  # type: ignore[arg-type]
        earliest, latest = windows.get(type(action), (0, 1 << 62))
        assert earliest <= now <= latest, describe(action)


@given(st.integers(TIMES.t5 + 1, TIMES.challenge_until), st.sets(st.tuples(st.integers(0, 1), st.integers(0, 5))))
def test_an_auditor_accuses_exactly_the_seats_whose_claims_its_own_leaves_contradict(
    now: int, lies: set[tuple[int, int]]
) -> None:
    made, memory = audited(now, tuple(lies))
    accused = list(attesting.accuse_solvers(view(VERA, now, made, memory)))
    # One game per commitment: a conviction takes its lock once.
    assert {a.ref.seat for a in accused if isinstance(a, Challenge)} == {seat for seat, _ in lies}
    assert len(accused) == len({seat for seat, _ in lies})
    assert all(isinstance(a, Challenge) and (a.ref.seat, a.ref.duty) in lies for a in accused)


def game(ref: ClaimRef, challenger: Address, defender: Address, number: int = 1) -> GameRecord:
    return GameRecord(number, digest("claim"), ref, challenger, defender, b"", Stage.STEPS, Side.DEFENDER, 10**12)


def test_an_open_game_of_somebody_else_is_waited_for_and_never_relied_upon() -> None:
    now = TIMES.t5 + 5
    made, memory = audited(now, ((1, 2),))
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(1), 2)
    other = game(replace(ref, duty=3), VIKTOR, BOB)
    made.games = {1: other}
    assert not list(attesting.accuse_solvers(view(VERA, now, made, memory)))
    late = keeper.patience(view(VERA, now, made, memory), Round(0))
    assert list(attesting.accuse_solvers(view(VERA, late, made, memory))) == [Challenge(ref)]
    # Lost on purpose: the accusation is made at once.
    other.verdict = Verdict(VIKTOR, Side.CHALLENGER, Outcome.DEFAULT)
    assert list(attesting.accuse_solvers(view(VERA, now, made, memory))) == [Challenge(ref)]
    # Won: the lock is gone, and one more game would win nothing.
    other.verdict = Verdict(BOB, Side.DEFENDER, Outcome.LEAF)
    assert not list(attesting.accuse_solvers(view(VERA, late, made, memory)))


def test_a_game_that_was_lost_is_not_opened_again_but_the_next_false_claim_is() -> None:
    now = TIMES.t5 + 5
    made, memory = audited(now, ((1, 2), (1, 4)))
    first = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(1), 2)
    lost = game(first, VERA, BOB)
    lost.verdict = Verdict(VERA, Side.CHALLENGER, Outcome.DEFAULT)
    made.games = {1: lost}
    assert list(attesting.accuse_solvers(view(VERA, now, made, memory))) == [Challenge(replace(first, duty=4))]


def test_a_solver_defends_its_work_against_a_false_attestation() -> None:
    now = TIMES.t5 + 5
    made, _ = audited(now, ((0, 1), (1, 5)))
    (accusation,) = solving.defend_own_work(view(ADA, now, made))
    assert accusation == Challenge(ClaimRef(ClaimKind.ATTESTATION, Round(0), Seat(0), 1, party=VERA))
    (accusation,) = solving.defend_own_work(view(BOB, now, made))
    assert accusation == Challenge(ClaimRef(ClaimKind.ATTESTATION, Round(0), Seat(1), 5, party=VERA))


def test_a_lazy_verifier_accuses_nobody() -> None:
    now = TIMES.t5 + 5
    made, memory = audited(now, ((1, 2),))
    seen = view(VERA, now, made, memory)
    honest = list(verifying.candidates(seen, verifying.VerifierPlan()))
    assert any(isinstance(a, Challenge) for a in honest)
    assert list(without_accusations(honest)) == [a for a in honest if not isinstance(a, Challenge)]


def test_a_whistleblower_accuses_a_solver_only_after_the_verifiers_had_their_time() -> None:
    made, memory = audited(TIMES.t5 + 5, ((1, 2),))
    made.rounds[0].attendance[WILMA] = made.rounds[0].attendance.pop(VERA)
    early = list(attesting.accuse_solvers_as_third_party(view(WILMA, TIMES.leaves_until, made, memory)))
    late = list(attesting.accuse_solvers_as_third_party(view(WILMA, TIMES.leaves_until + 1, made, memory)))
    assert not early
    assert late == [CommitChallenge(ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(1), 2), digest("other"))]


def test_a_whistleblower_is_drawn_only_for_what_some_verifier_must_attest() -> None:
    made = state(TIMES.t4)
    record = made.rounds[0]
    seen = view(WILMA, TIMES.t4, made)
    everything = tuple(seen.duties_of(record))
    assert whistling.attested(seen, record, everything) == ()
    record.attendance[VERA] = AttendanceRecord(Role.VERIFIER, digest("root"), b"y" * 256)
    covered = set(seen.drawn(record, made.attesters[VERA], b"y" * 256))
    assert set(whistling.attested(seen, record, everything)) == covered


@given(st.lists(st.sampled_from([ADA, BOB, VERA, VIKTOR]), min_size=1, unique=True), st.integers(0, 50))
def test_exactly_one_member_goes_first_and_the_others_wait_in_line(order: list[Address], round_: int) -> None:
    places = sorted(turn_of(sorted(order), who, Round(round_)) for who in order)
    assert places == list(range(len(order)))


def test_above_the_fee_cap_who_is_to_move_waits_defers_three_times_and_then_moves() -> None:
    made = state(TIMES.t7)
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(1), 2)
    made.head = replace(made.head, base_fee=CHARTER.chain.fee_cap + 1)
    made.games = {1: replace(game(ref, VERA, BOB), deadline=TIMES.t7 + 10_000)}
    near = TIMES.t7 + 10_000 - FACTS.clocks.replay - FACTS.clocks.budget // 2
    assert not list(keeper.play(view(BOB, near - 1, made)))
    assert near in keeper.times(view(BOB, near - 1, made))
    for number in range(3):
        assert list(keeper.play(view(BOB, near, made))) == [Defer(1, number)]
        made.games[1].deferrals[Side.DEFENDER] += 1
    assert list(keeper.play(view(BOB, near, made))) == [Play(1, 0)]
    made.games[1].deferrals.clear()
    made.head = replace(made.head, base_fee=CHARTER.chain.fee_cap)
    assert list(keeper.play(view(BOB, TIMES.t7, made))) == [Play(1, 0)]


def test_a_silent_defender_makes_no_move_but_its_opponent_ends_the_game() -> None:
    made = state(TIMES.t7)
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(1), 2)
    made.games = {1: replace(game(ref, VERA, BOB), deadline=TIMES.t7 + 10)}
    assert list(keeper.play(view(BOB, TIMES.t7, made))) == [Play(1, 0)]
    seen = view(BOB, TIMES.t7, made)
    assert not list(as_cheat(Silent(Round(0)), keeper.play(seen), seen))
    assert not list(keeper.play(view(VERA, TIMES.t7 + 10, made)))
    assert list(keeper.play(view(VERA, TIMES.t7 + 11, made))) == [EndOverdue(1)]


def test_a_solver_trains_from_the_root_that_it_verified_and_from_no_other() -> None:
    now = TIMES.t7 + 100
    made, memory = audited(now)
    first = made.rounds[0]
    second = RoundRecord(Round(1), times(now), (ADA, BOB, *[None] * 6))
    made.rounds.append(second)
    plan = solving.SolverPlan()

    def next_work() -> list[Action]:
        seen = view(ADA, now, made, memory)
        return [a for a in solving.candidates(seen, plan) if isinstance(a, Train | Commit)]

    from assay_ledger.index.records import OuterRecord

    right = OuterStep(digest("p"), digest("m"))
    wrong = OuterStep(digest("false"), digest("m"))
    x = digest("x")
    first.inclusions[FACTS.genesis] = 3, x
    first.outers[wrong.root] = OuterRecord(wrong.root, FACTS.genesis, wrong.parameters, wrong.momentum)
    assert not next_work(), "only a root that was not verified stands"
    memory.outers[x] = right
    assert not next_work(), "the right root is not posted"
    first.outers[right.root] = OuterRecord(right.root, FACTS.genesis, right.parameters, right.momentum)
    assert next_work() == [Train(Round(1), Seat(0), right.root)]
    memory.trained[Round(1), right.root] = Trained(right.root, (), (), digest("u"))
    assert next_work() == [Commit(Round(1), Seat(0), right.root)]
    first.outers[right.root].fallen = True
    assert not next_work()


def test_a_newcomer_takes_a_seat_and_whoever_leaves_does_not() -> None:
    stranger = person("stranger")
    made = state(T0)
    assert Join() in list(solving.candidates(view(stranger, T0, made), solving.SolverPlan()))
    assert Join() not in list(solving.candidates(view(stranger, T0, made), solving.SolverPlan(leaving=True)))
    assert Join() not in list(solving.candidates(view(ADA, T0, made), solving.SolverPlan()))


def test_leaves_are_made_anew_for_another_draw_even_if_it_holds_all_that_they_answer() -> None:
    made = state(TIMES.t2 + 1)
    record, old, new = made.rounds[0], digest("old draw"), digest("new draw")
    memory = drawn_memory(VERA, made)
    seen = view(VERA, TIMES.t2 + 1, made, memory)
    memory.draws[Round(0)] = old
    assert not attesting.leaves_are_stale(seen, record, old)
    # The new draw has one duty more, which has no answer yet.
    memory.leaves[Round(0)] = memory.leaves[Round(0)][1:]
    duty = memory.duties[Round(0)][0]
    answer = memory.results.pop((seen.program_of(duty), duty.x))
    assert attesting.leaves_are_stale(seen, record, new)
    # What had no answer in time stays without, also after a restart, until there is one.
    assert not attesting.leaves_are_stale(seen, record, old)
    memory.results[seen.program_of(duty), duty.x] = answer
    assert attesting.leaves_are_stale(seen, record, old)
    record.attendance[VERA] = AttendanceRecord(Role.VERIFIER, digest("root"), None)
    assert not attesting.leaves_are_stale(seen, record, new)


def test_a_root_is_bound_without_what_could_not_be_computed_only_at_the_last_moment() -> None:
    made = state(TIMES.t2 + 1)
    made.rounds[0].seed = digest("seed")
    memory = drawn_memory(VERA, made)
    memory.leaves.clear()
    missing = next(iter(memory.results))
    del memory.results[missing]
    early = list(attesting.attest(view(VERA, TIMES.t2 + 1, made, memory), TIMES.t3))
    late = list(attesting.attest(view(VERA, TIMES.t3 - 1, made, memory), TIMES.t3))
    assert early and all(isinstance(a, Replay) for a in early)
    assert isinstance(late[-1], Attest) and any(isinstance(a, Replay) for a in late)
