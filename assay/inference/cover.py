"""What the bond of a gateway answers for: which statements, of which model, and until when. Source: ADR 67."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from web3.exceptions import Web3Exception

from assay.inference.statement import SignedStatement
from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.run.answers import MAX_TOKENS
from assay.protocol.types import Address, Digest
from assay_ledger.deployment.answers import AnswerGates

LOOKED_UP_S: Final = 30.0
"""A conviction is seen so much later by who pays: a few answers."""


class NotCovered(RejectedError):
    """No bond answers for a statement."""

    remedy = "Ask a gateway that `assay gateway list` shows, and pledged for longer than an accusation takes."


def accusing_time(gates: AnswerGates) -> int:
    """Seconds of chain time that a reader needs, from a false answer until it is presented, at the most."""
    terms = gates.run.charter
    return terms.chain.reorg_depth + 2 * terms.chain.inclusion_delay + terms.clocks.replay


def check_covered(gates: AnswerGates, signed: SignedStatement) -> int:
    """Until when a statement can be presented, in seconds of chain time. Raises NotCovered."""
    check_presentable(gates, signed)
    return check_pledged(gates, signed.signer, signed.statement.model)


def check_presentable(gates: AnswerGates, signed: SignedStatement) -> None:
    """That a statement is of the run and program that gateways here answer for; asks no node. Raises NotCovered."""
    said, run = signed.statement, gates.run
    if (said.chain_id, said.run) != (run.chain.chain_id, run.address):
        raise NotCovered("The statement is of another run, or of none.")
    if said.program != gates.terms.forward:
        raise NotCovered("The statement names another forward program than the gateways here answer for.")
    if (tokens := len(said.prompt) + len(said.answer)) > MAX_TOKENS:
        raise NotCovered(f"Prompt and answer have {tokens} tokens; {MAX_TOKENS} can be presented.")


def check_pledged(gates: AnswerGates, gateway: Address, model: Digest) -> int:
    """Until when what a gateway signs now can be presented, in seconds of chain time. Raises NotCovered."""
    run = gates.run
    found = run.chain.ask(gates.gateways.bond_of(gateway))
    if not found.is_bonded:
        what = "was convicted of a false answer" if found.is_convicted else "has no bond here"
        raise NotCovered(f"The gateway 0x{gateway.hex()} {what}.")
    until = run.chain.ask(gates.gateways.pledge_of(gateway, model))
    now = run.chain.head().timestamp
    # Attack: an answer in the last minutes of a pledge, which nobody has the time to present.
    if until < now + accusing_time(gates):
        raise NotCovered(f"The pledge ends at {until}, in {max(0, until - now)} s: too soon for an accusation.")
    return until


class CoverWatch:
    """Whether a gateway's bond answers for a model, looked up on the chain for who pays it; safe for threads."""

    def __init__(
        self, gates: AnswerGates, gateway: Address, model: Digest, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gates, self._gateway, self._model, self._clock = gates, gateway, model, clock
        self._looked_at = float("-inf")
        self.until = 0
        """The end of its pledge, in seconds of chain time, when it was last looked up."""

    def check(self) -> None:
        """Before anything is signed for it; the chain is asked every LOOKED_UP_S seconds. Raises NotCovered, and what
        a node that does not answer raises: nobody pays for what nobody may answer for."""
        if self._clock() - self._looked_at >= LOOKED_UP_S:
            try:
                self.until = check_pledged(self._gates, self._gateway, self._model)
            except Web3Exception as error:
                text = f"The node did not answer as expected ({type(error).__name__})."
                raise UnavailableError(text, code="RpcError") from None
            self._looked_at = self._clock()

    def why_not(self, signed: SignedStatement) -> str:
        """Why no bond answers for an answer; empty where one does.

        No node is asked: the answer is paid for, and one that fails then must not cost its reader both.
        """
        try:
            check_presentable(self._gates, signed)
        except NotCovered as error:
            return error.message
        return ""
