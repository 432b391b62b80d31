"""Owners, a guardian, users and gateways do anything in any order: model and contracts end alike, nothing is lost."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay.protocol.rounds.decisions import Decision, Verb
from assay.protocol.types import Digest, Round, Seat
from tests.harness.payments.voucher_stage import DELAY, GATEWAYS
from tests.harness.rounds.governed_money import PAYERS
from tests.harness.rounds.governed_world import DEMOCRATIC
from tests.harness.rounds.granting_world import GrantingWorld
from tests.harness.rounds.samples import ETHER

TERMS = DEMOCRATIC.governance
WAITS = sorted({1, 600, TERMS.voting_delay, TERMS.voting_delay + 1, TERMS.voting_period, TERMS.timelock,
                TERMS.guardian_pause, TERMS.longest_pause, 14 * 86_400, DEMOCRATIC.timing.vesting})  # fmt: skip
DECISIONS = [
    Decision(Verb.PAUSE, (86_400,)),
    Decision(Verb.PAUSE, (TERMS.longest_pause + 1,)),
    Decision(Verb.RESUME),
    Decision(Verb.SUNSET),
    Decision(Verb.PRICE, (700_000,)),
    Decision(Verb.PRICE, (TERMS.least_price_ppm - 1,)),
    Decision(Verb.LIST, (GATEWAYS[0], True)),
    Decision(Verb.LIST, (GATEWAYS[0], False)),
    Decision(Verb.DISMISS),
    Decision(Verb.SUCCESSOR, (GATEWAYS[1],)),
]
people, decisions = st.integers(0, 3), st.sampled_from(DECISIONS)
labels, gateways = st.sampled_from(["", "again"]), st.integers(0, 1)
choices = st.integers(0, 2**16)
MOMENTS = [None, -1, 0, 1]
"""Seconds after a grant's term; None: whenever it is."""
TICKETS = DEMOCRATIC.launch.tickets
"""As many as a run needs to be opened; it has one more."""
amounts = st.sampled_from([0, 1, 10**6, ETHER, 7 * ETHER])


class GovernanceMachine(RuleBasedStateMachine):
    """`accepted`: calls that went through at least once, over all examples."""

    accepted: ClassVar[set[str]]

    @initialize()
    def begin(self) -> None:
        self.world = GrantingWorld()
        self.owners = self.world.owners()
        self.world.deposit_revenue(1000 * ETHER)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.check_money()
            self.world.check_grants(whole=True)
            self.world.end()

    def _said(self, call: str, said: str) -> None:
        if not said:
            self.accepted.add(call)

    @rule(seconds=st.sampled_from(WAITS))
    def wait(self, seconds: int) -> None:
        self.world.tick(seconds)

    @rule(a=people, b=people, part=st.sampled_from([0, 1, 2, 3]))
    def transfer(self, a: int, b: int, part: int) -> None:
        had = self.world.run.grants.token.balances[self.owners[a]]
        amount = had + 1 if part == 3 else had * part // 2
        self._said("transfer", self.world.transfer(self.owners[a], self.owners[b], amount))

    @rule(a=people, b=people)
    def delegate(self, a: int, b: int) -> None:
        self._said("delegate", self.world.delegate(self.owners[a], self.owners[b]))

    @rule(a=people, decision=decisions, label=labels)
    def propose(self, a: int, decision: Decision, label: str) -> None:
        self._said("propose", self.world.propose(self.owners[a], decision, label))

    @rule(a=people, decision=decisions, label=labels, support=st.integers(0, 3))
    def vote(self, a: int, decision: Decision, label: str, support: int) -> None:
        self._said("vote", self.world.vote(self.owners[a], self.world.id_of(decision, label), support))

    @rule(decision=decisions, label=labels)
    def queue(self, decision: Decision, label: str) -> None:
        self._said("queue", self.world.queue(decision, label))

    @rule(decision=decisions, label=labels)
    def execute(self, decision: Decision, label: str) -> None:
        said = self.world.execute(decision, label)
        self._said("execute", said)
        self._said(decision.verb.name, said)

    @rule(several=st.permutations(DECISIONS), label=labels)
    def carry(self, several: list[Decision], label: str) -> None:
        """Everybody is of one mind about all, one after the other: chance alone would hardly ever execute anything."""
        world = self.world
        for decision in several:
            if world.propose(self.owners[0], decision, label):
                continue
            world.tick(TERMS.voting_delay + 1)
            for who in self.owners:
                self._said("vote", world.vote(who, world.id_of(decision, label)))
            world.tick(TERMS.voting_period)
            if not world.queue(decision, label):
                self._said("queue", "")
                world.tick(TERMS.timelock)
                self.execute(decision, label)

    @rule(a=people, decision=decisions, label=labels)
    def withdraw_proposal(self, a: int, decision: Decision, label: str) -> None:
        self._said("withdraw", self.world.withdraw_proposal(self.owners[a], decision, label))

    @rule(decision=decisions, label=labels)
    def think_again(self, decision: Decision, label: str) -> None:
        """A proposal that its proposer takes back at once, which chance alone hardly ever does in time."""
        self.propose(0, decision, label)
        self.withdraw_proposal(0, decision, label)

    @rule(stranger=st.booleans())
    def guardian_pause(self, stranger: bool) -> None:
        self._said("guardian", self.world.guardian_pause(self.owners[0] if stranger else None))

    @rule()
    def restart(self) -> None:
        """Anybody opens the next round, if it may open."""
        self._said("round", self.world.restart())

    @rule()
    def train(self) -> None:
        """Everybody who has a seat trains a round, if one opens."""
        self.world.open_and_commit(self.owners)

    @rule(epochs=st.integers(1, 3))
    def audit(self, epochs: int) -> None:
        self.world.audit(epochs)

    @rule(which=choices, later=st.integers(0, 1))
    def credit_work(self, which: int, later: int) -> None:
        """Anybody settles any work, audited or not, settled already or not; `later`: names a later epoch as its own."""
        round_, seat = sorted(self.world.works)[which % len(self.world.works)]
        self._said("credit", self._settled(round_, seat, later))

    @rule(which=choices)
    def credit_finding(self, which: int) -> None:
        names = list(self.world.run.duties.attestations.attestations)
        self._said("credit", self.world.settle_duty(names[which % len(names)]))

    @rule()
    def earn(self) -> None:
        """A round from its opening to the shares of its work: chance alone would hardly ever audit all of it."""
        self.train()
        self.world.audit_all()
        for round_, seat in sorted(self.world.works):
            if not self.world.model.commitments.works[round_, seat].settled:
                self._said("credit", self._settled(round_, seat))

    def _settled(self, round_: Round, seat: Seat, later: int = 0) -> str:
        return self.world.settle_work(round_, seat, self.world.own_epoch(round_) + later)

    @rule(which=choices, moment=st.sampled_from(MOMENTS))
    def vest(self, which: int, moment: int | None) -> None:
        """Anybody asks for anybody's grant: now, or around the second of its term. Once it is over, it is unknown."""
        names = list(self.world.earned)
        pending = [name for name in names if not self.world.earned[name].ended] or names
        self._vest(pending[which % len(pending)], moment)

    def _vest(self, name: Digest, moment: int | None = None) -> None:
        grant = self.world.earned[name]
        if moment is not None:
            self.world.at(max(self.world.now, grant.vests_at + moment))
        left = grant.vests_at - self.world.now
        said = self.world.release_grant(name)
        self._said(grant.ended, said)
        if said == "NotVested" and left == 1:
            self.accepted.add("a second early")
        if not said and not left:
            self.accepted.add("in time")
        assert self.world.release_grant(name) == (said or "GrantNotFound")

    @rule(which=choices)
    def mature(self, which: int) -> None:
        """Shares are earned, and somebody asks for them a second early and in time."""
        self.earn()
        pending = [name for name, grant in self.world.earned.items() if grant.vests_at > self.world.now]
        if pending:
            name = pending[which % len(pending)]
            self._vest(name, -1)
            self._vest(name, 0)

    @rule(a=people, b=people, convicted=st.booleans())
    def judge(self, a: int, b: int, convicted: bool) -> None:
        """A game about what somebody committed to: a conviction takes what is pending of its tenure, nothing else."""
        tenure = self.world.tenures[self.owners[a]]
        works = self.world.model.commitments.works
        mine = [key for key in self.world.works if works[key].tenure == tenure and not works[key].settled]
        if mine and not self.world.judge(*mine[-1], convicted, self.owners[b]) and convicted:
            self.accepted.add("convict")

    @rule(a=people, b=people, moment=st.sampled_from(MOMENTS))
    def fall(self, a: int, b: int, moment: int | None) -> None:
        """Somebody lies in a round and loses the shares of others, unless they vest by then.

        Chance alone would hardly ever convict in time.
        """
        self.earn()
        self.train()
        tenure = self.world.tenures[self.owners[a]]
        mine = [name for name, grant in self.world.earned.items() if grant.tenure == tenure and not grant.ended]
        if mine and moment is not None:
            self.world.at(max(self.world.now, self.world.earned[mine[-1]].vests_at + moment))
        self.judge(a, b, True)
        for name in mine:
            self._vest(name)

    @rule(b=people, which=choices)
    def expose(self, b: int, which: int) -> None:
        """A ticket, one in a run, attests falsely after it earned shares, and loses them."""
        world = self.world
        self.earn()
        for name in sorted(world.run.duties.attestations.attestations.keys() - world.run.payments.findings):
            self._said("credit", world.settle_duty(name))
        self.train()
        world.audit(2)
        fresh = {name: made.ticket for name, made in world.run.duties.attestations.attestations.items()}
        fresh = {name: ticket for name, ticket in fresh.items() if name not in world.run.payments.findings}
        if not fresh or len(world.chains) <= TICKETS:
            return
        name = sorted(fresh)[which % len(fresh)]
        mine = [name_ for name_, grant in world.earned.items() if grant.ticket == fresh[name] and not grant.ended]
        if world.judge_finding(name, True, self.owners[b]):
            return
        for grant in mine:
            self._vest(grant)
            if world.earned[grant].ended == "cancel":
                self.accepted.add("cancel a finding")

    @rule(payer=people, gateway=gateways, amount=amounts)
    def pay_in(self, payer: int, gateway: int, amount: int) -> None:
        self._said("deposit", self.world.pay_in(payer, gateway, amount))

    @rule(payer=people, gateway=gateways, amount=amounts)
    def ask_back(self, payer: int, gateway: int, amount: int) -> None:
        self._said("ask", self.world.ask_back(payer, gateway, amount))

    @rule(payer=people, gateway=gateways)
    def take_back(self, payer: int, gateway: int) -> None:
        self._said("refund", self.world.take_back(payer, gateway))

    @rule(payer=people, gateway=gateways)
    def leave(self, payer: int, gateway: int) -> None:
        """A user who pays in, and takes it back: chance alone would hardly ever wait long enough."""
        self.pay_in(payer, gateway, 10**6)
        self.ask_back(payer, gateway, 1)
        self.world.tick(DELAY)
        self.take_back(payer, gateway)

    @rule(gateway=gateways, batch=st.lists(st.tuples(people, amounts), min_size=1, max_size=3))
    def redeem(self, gateway: int, batch: list[tuple[int, int]]) -> None:
        self._said("redeem", self.world.redeem(gateway, batch))

    @rule()
    def pay_owners(self) -> None:
        owed = self.world.vouchers.owed.get(self.world.earned_in, 0)
        if owed >= 10**6:
            self._said("pay", self.world.pay_owners(owed))

    @rule(payer=people, gateway=gateways)
    def serve(self, payer: int, gateway: int) -> None:
        """A user pays in, a gateway redeems all of it, and the owners get theirs."""
        self.pay_in(payer, gateway, 7 * ETHER)
        self.redeem(gateway, [(payer, 7 * ETHER)])
        self.pay_owners()

    @rule(a=people)
    def claim(self, a: int) -> None:
        if self.world.claim(self.owners[a]):
            self.accepted.add("claim")

    @invariant()
    def alike(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.check_votes()
        self.world.check_earnings()
        self.world.check_grants()
        self.nobody_votes_twice()

    def nobody_votes_twice(self) -> None:
        """Attack: more weight by splitting, moving or delegating shares. All weights are at most what there was."""
        governor, token = self.world.governor, self.world.run.grants.token
        for proposal in governor.proposals.values():
            if proposal.snapshot < self.world.now:
                weights = sum(governor.weight(who, proposal.snapshot) for who in [*self.world.people, *PAYERS])
                earlier = token.past_supply(proposal.snapshot - TERMS.voting_delay)
                assert sum(proposal.weights) <= weights <= min(earlier, token.past_supply(proposal.snapshot))
