"""Many rounds in which everything fails at random: nobody honest loses anything, memory and disks stay bounded.

`make soak` runs 300 rounds (ASSAY_SOAK_ROUNDS, ASSAY_SOAK_SEED) and prints the table that docs/LOG.md quotes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.harness.actors.world import SharedChain
from tests.harness.soak.outcomes import missed_merges, missed_rounds, outcomes
from tests.harness.soak.soaked_run import HONEST_AUDITORS, HONEST_SOLVERS, SoakedRun, SoakRow, soak

MISSED_MERGES = 0.02
"""Of an honest solver's merges at most, since its store is down for a minute time and again."""


def check_nobody_honest_lost(soaked: SoakedRun, rounds: int) -> None:
    """Every round of everybody honest was paid, nobody honest was fined, and whoever lied was convicted.

    A merge is made within a minute or two by whoever is there: who has no store meanwhile is not paid for that one, and
    loses nothing. No merge is missed for any other reason, and few for that.
    """
    charter = soaked.made.run.charter
    e, found = charter.economics, {one.name: one for one in outcomes(soaked)}
    for name in HONEST_SOLVERS:
        one = found[name]
        assert (one.worked, one.fines, one.is_convicted) == (rounds, 0, False), missed_rounds(soaked, name)
        missed = missed_merges(soaked, name)
        assert all(one.was_store_down for one in missed), [one for one in missed if not one.was_store_down]
        assert one.gained == rounds * charter.price + (rounds - len(missed)) * e.merge_pay
        assert len(missed) <= MISSED_MERGES * rounds
    for name in HONEST_AUDITORS:
        one = found[name]
        # Which tickets are called is drawn: of few rounds one may audit nothing.
        assert (one.fines, one.is_convicted) == (0, False)
        assert one.gained >= one.worked * e.wage
    assert sum(found[name].worked for name in HONEST_AUDITORS) > 0
    assert all(found[name].is_convicted and found[name].gained < 0 for name in soaked.liars)
    escrow = soaked.made.chain.ask(soaked.made.run.escrow.balance())
    # A liar's process has ended, and nobody else has a reason to ask for what is left of its stake: a seat's fee.
    gone = {who for who, _ in soaked.departed.values()}
    left = [amount for owner, amount in soaked.made.locks().values() if owner not in gone]
    assert left == [escrow] * bool(escrow)


def check_disks_are_bounded(soaked: SoakedRun) -> None:
    """Progress of rounds and replays that nobody can dispute any more is gone."""
    for name in soaked.around:
        for kind in ("replays", "rounds"):
            folder = soaked.made.folder / name / kind
            assert not folder.exists() or len({f.name.partition("-")[0] for f in folder.iterdir()}) <= 2, (name, kind)


@pytest.mark.long
def test_everything_fails_for_three_rounds_and_nobody_honest_loses(stage: SharedChain, tmp_path: Path) -> None:
    soaked = soak(stage, tmp_path, 3, seed=7, every=3, told=lambda _: None)
    assert sum(soaked.faults().values()) > 10
    check_nobody_honest_lost(soaked, 3)
    check_disks_are_bounded(soaked)


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(3 * 3600)
def test_everything_fails_for_hundreds_of_rounds_in_flat_memory(stage: SharedChain, tmp_path: Path) -> None:
    rounds = int(os.environ.get("ASSAY_SOAK_ROUNDS", "300"))
    seed = int(os.environ.get("ASSAY_SOAK_SEED", "1"))
    print(SoakRow.header())
    soaked = soak(stage, tmp_path, rounds, seed, max(rounds // 12, 1), lambda row: print(row.line(), flush=True))
    print(json.dumps(dict(soaked.faults().most_common())))
    for one in outcomes(soaked):
        print(one.line())
    for name in HONEST_SOLVERS:
        missed = missed_merges(soaked, name)
        print(f"{name}: merges missed in rounds {[one.round for one in missed]}")
    check_nobody_honest_lost(soaked, rounds)
    check_disks_are_bounded(soaked)
    assert len(soaked.liars) >= rounds // 25
    # All actors are in one process, with every record of the run: a tenth over the last two thirds of it, no more.
    third = next(row for row in soaked.rows if row.rounds * 3 >= rounds)
    assert soaked.rows[-1].memory < 1.1 * third.memory
    assert soaked.rows[-1].folders < 1.5 * third.folders + 1
