"""The deadlines of a round: equal to Schedule.sol."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.run.charter import Windows


@dataclass(frozen=True, slots=True)
class Times:
    """The deadlines of a round in chain time; t2 and t7 are first seconds, the others last ones."""

    t0: int
    t1: int
    receipts_until: int
    t2: int
    t3: int
    t4: int
    t5: int
    leaves_until: int
    t7: int
    challenge_until: int

    @staticmethod
    def of(w: Windows, t0: int) -> Times:
        """The schedule of a round that opened at t0."""
        t1 = t0 + w.commit
        receipts_until = t1 + w.receipt
        t2 = receipts_until + w.seed_delay
        t3 = t2 + w.attest
        t4 = t3 + w.draw
        t5 = t4 + w.whistle
        leaves_until = t5 + w.reveal
        t7 = leaves_until + w.reveal + 1
        return Times(t0, t1, receipts_until, t2, t3, t4, t5, leaves_until, t7, t7 + w.challenge)
