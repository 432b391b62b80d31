"""People of a run with governance: they vest, delegate, vote and pause, on its contracts and its model at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from assay.protocol.digests import keccak
from assay.protocol.rounds.decisions import Decision, Verb, proposal_id, proposed
from assay.protocol.rounds.governor import Governor
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest
from tests.harness.rounds.charters import GOVERNED
from tests.harness.rounds.money_chain import CONTRACTS, DENSE, MoneyChain
from tests.harness.rounds.money_scenes import final_round, settle
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.stage import text

DEMOCRATIC: Final = replace(DENSE, governance=GOVERNED.governance)
"""Four seats whose owners vote."""


class GovernedChain(MoneyChain):
    """The same contracts, and the governor."""

    contracts_of: Mapping[str, str] = {**CONTRACTS, "governor": "RunGovernor"}


@cache
def _chain(charter: RunCharter) -> GovernedChain:
    return GovernedChain(charter)


class GovernedWorld(MoneyWorld):
    """Owners of shares beside everybody else."""

    chain_of = staticmethod(_chain)

    def __init__(self, charter: RunCharter = DEMOCRATIC, label: object = 0) -> None:
        super().__init__(charter, label)
        assert self.run.governor is not None
        self.governor: Governor = self.run.governor
        self.guardian = self.charter.governance.guardian
        for who in (self.guardian, self.sponsor):
            self.chain.evm.evm.set_balance(text(who), 10**24)

    # --- shares

    def release_grant(self, name: Digest) -> str:
        return self.do(lambda: self.run.grants.release(name, self.now), "Grants", "release", name)

    def transfer(self, who: Address, to: Address, amount: int) -> str:
        move = lambda: self.run.grants.token.transfer(who, to, amount, self.now)  # noqa: E731
        return self.do(move, "ModelShares", "transfer", text(to), amount, who=who)

    def delegate(self, who: Address, to: Address) -> str:
        move = lambda: self.run.grants.token.delegate(who, to, self.now)  # noqa: E731
        return self.do(move, "ModelShares", "delegate", text(to), who=who)

    def leave_seat(self, who: Address) -> str:
        """The tenure of a holder ends with the round under way."""
        number = self.tenures[who]
        return self.do(lambda: self.model.tenures.leave(who, number), "Tenures", "leave", number, who=who)

    # --- decisions

    def propose(self, who: Address, decision: Decision, description: str = "") -> str:
        ask = lambda: self.governor.propose(who, decision, description, self.now)  # noqa: E731
        targets, values, calls = proposed(self.governor.place, decision)
        return self.do(ask, "RunGovernor", "propose", [text(t) for t in targets], values, calls, description, who=who)

    def id_of(self, decision: Decision, description: str = "") -> int:
        return proposal_id(self.governor.place, decision, description)

    def vote(self, who: Address, number: int, support: int = 1) -> str:
        cast = lambda: self.governor.cast(who, number, support, self.now)  # noqa: E731
        return self.do(cast, "RunGovernor", "castVote", number, support, who=who)

    def queue(self, decision: Decision, description: str = "") -> str:
        number = self.id_of(decision, description)
        return self._with(lambda: self.governor.queue(number, self.now), "queue", decision, description)

    def execute(self, decision: Decision, description: str = "") -> str:
        number = self.id_of(decision, description)
        return self._with(lambda: self.governor.execute(number, self.now), "execute", decision, description)

    def withdraw_proposal(self, who: Address, decision: Decision, description: str = "") -> str:
        number = self.id_of(decision, description)
        take = lambda: self.governor.cancel(who, number, self.now)  # noqa: E731
        return self._with(take, "cancel", decision, description, who=who)

    def mature(self, generation: int) -> str:
        return self.do(lambda: self.governor.mature(generation), "RunGovernor", "mature", generation)

    def guardian_pause(self, who: Address | None = None) -> str:
        who = who or self.guardian
        pause = lambda: self.governor.guardian_pause(who, self.now)  # noqa: E731
        return self.do(pause, "RunGovernor", "guardianPause", who=who)

    def decide(self, voters: list[Address], decision: Decision, description: str = "") -> str:
        """Everybody votes for it, and it is carried out as soon as it may be; how that ended."""
        assert self.propose(voters[0], decision, description) == ""
        number, terms = self.id_of(decision, description), self.charter.governance
        self.tick(terms.voting_delay + 1)
        for who in voters:
            assert self.vote(who, number) == ""
        self.tick(terms.voting_period)
        assert self.queue(decision, description) == ""
        self.tick(terms.timelock)
        return self.execute(decision, description)

    def _with(self, model: Any, function: str, decision: Decision, description: str, **who: Any) -> str:
        targets, values, calls = proposed(self.governor.place, decision)
        digest = keccak(description.encode())
        return self.do(model, "RunGovernor", function, [text(t) for t in targets], values, calls, digest, **who)

    # --- scenes

    def owners(self, rounds: int = 1, *, shown: bool = True) -> list[Address]:
        """Rounds are trained, settled and vested by everybody, each votes for itself, and the voting delay is over.

        shown: somebody has shown that rounds are final.
        """
        people = self.start(escrow=100_000 * 10**18)
        trained = [final_round(self, people) for _ in range(rounds)]
        for r in trained:
            settle(self, r, people)
        self.tick(self.charter.timing.vesting)
        for name in list(self.run.grants.grants):
            if not self.run.grants.grants[name].done:
                assert self.release_grant(name) == ""
        for who in people:
            assert self.delegate(who, who) == ""
        if shown:
            assert self.mature(trained[-1] + 1) == ""
        self.tick(self.charter.governance.voting_delay + 1)
        return people

    def check_votes(self) -> None:
        """Shares, votes, states of proposals and all that a vote reaches are the same on both."""
        token, book = self.run.grants.token, self.governor
        assert self.call("ModelShares", "totalSupply") == sum(token.balances.values())
        for who in (self.sponsor, self.guardian, *self.people):
            assert self.call("ModelShares", "balanceOf", text(who)) == token.balances[who]
            assert self.call("ModelShares", "getVotes", text(who)) == token.past_votes(who, self.now)
        shown = [self.call("RunGovernor", f) for f in ("pausedUntil", "votedUntil", "isSunset", "pricePpm", "isMature")]
        assert shown == [book.paused_until, book.voted_until, book.is_sunset, book.price_ppm, book.is_mature]
        assert self.call("RunGovernor", "guardian") == text(book.guardian)
        assert self.call("RunGovernor", "guardianPausesLeft") == book.pauses_left
        assert self.call("RunGovernor", "isPaused") == book.is_paused(self.now)
        assert self.call("RunGovernor", "leastVested") == book.least_vested
        assert self.call("Commitments", "isOver") == self.model.commitments.is_over(self.now)
        for number, proposal in book.proposals.items():
            assert self.call("RunGovernor", "state", number) == book.state(number, self.now)
            assert list(self.call("RunGovernor", "proposalVotes", number)) == proposal.weights
            if self.now > proposal.snapshot:
                assert self.call("RunGovernor", "quorum", proposal.snapshot) == book.quorum(proposal.snapshot)
        for round_ in range(len(self.model.commitments.rounds)):
            shown_pay = self.call("Escrow", "workPayOf", round_, 10**18)
            assert shown_pay == self.run.escrow.work_pay_of(round_, 10**18)  # type: ignore[arg-type]
        assert self.call("Escrow", "costOf", 3) == self.run.escrow.cost_of(3)


PAUSE: Final = Decision(Verb.PAUSE, (86_400,))
SUNSET: Final = Decision(Verb.SUNSET)
RESUME: Final = Decision(Verb.RESUME)
