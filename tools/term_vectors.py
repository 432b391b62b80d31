"""Write tests/vectors/terms.json: what follows from the terms of a charter, in wei, seconds and numbers of rounds.

The file's fields are explained in tests/vectors/README.md. `--check` compares instead of writing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.economics import run_times, stake_bounds
from assay.protocol.economics.audit_prices import AuditTerms
from assay.protocol.errors import RejectedError
from assay.protocol.game.clock import LARGEST, Clocks, Shape, longest_game, most_moves
from assay.protocol.rounds import clock, ids
from assay.protocol.rounds.epochs import SHIFT_NODE
from assay.protocol.rounds.escrow import cost_of, wages_of
from assay.protocol.rounds.terms import RoundState
from assay.protocol.run.beacon import EVMNET
from assay.protocol.types import Digest, Round, Wei
from tests.harness.rounds.charters import RUN, WIDE, changed
from tests.harness.rounds.samples import mark, terms_of

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "terms.json"
ETHER = 10**18


def prices(source: Random) -> Iterator[dict[str, Any]]:
    """S, B and U' of terms as they are used, and of any."""
    usual = AuditTerms(Wei(ETHER), Wei(13 * ETHER // 10), 100_000, 200_000, 333_333, 970_000, 100_000, 3, 1, Wei(0))
    for unsettled in (1, 24, 64):
        for capacity in (1, 4, 16):
            terms = replace(usual, unsettled=unsettled, open_duties=3 * capacity, merge_pay=Wei(ETHER // 100))
            yield _price(terms, 11)
    for _ in range(24):
        price = source.randrange(1, 1 << source.choice((4, 64, 96)))
        any_terms = AuditTerms(
            price=Wei(price),
            wage=Wei(source.randrange(1, 3 * price + 2)),
            audit_ppm=source.randrange(1, 1_000_001),
            reaudit_ppm=source.randrange(1, 1_000_000),
            cartel_ppm=source.randrange(900_000),
            drawn_bounty_ppm=source.choice((970_000, 1_000_000, source.randrange(900_000, 1_000_001))),
            third_bounty_ppm=source.randrange(500_001),
            open_duties=3 * source.choice((1, 2, 4, 16)),
            unsettled=source.randrange(1, 65),
            merge_pay=Wei(source.randrange(price + 1)),
        )
        yield _price(any_terms, source.choice((5, 10, 11, 20)))


def _price(t: AuditTerms, tenths: int) -> dict[str, Any]:
    """What follows from terms; a stake of so many tenths of the least one says what U' is."""
    case: dict[str, Any] = {name: str(value) for name, value in asdict(t).items() if name != "open_duties"}
    lock = stake_bounds.min_lock(t)
    try:
        stake = stake_bounds.min_stake(t, lock)
        more = Wei(stake * tenths // 10)
        most = str(stake_bounds.most_unsettled(t, lock, more))
    except RejectedError as refused:
        return {**case, "capacity": t.open_duties // 3, "lock": str(lock), "error": refused.code}
    return {
        **case,
        "capacity": t.open_duties // 3,
        "lock": str(lock),
        "stake": str(stake),
        "staked": str(more),
        "most_unsettled": most,
    }


def times(source: Random) -> Iterator[dict[str, Any]]:
    """U, the last verdict and the slowest round."""
    for _ in range(12):
        names = ("commit", "hold", "group_merge", "merge", "beacon_delay", "challenge", "rescue", "epoch", "seed_delay")
        drawn = {name: source.randrange(1, 100_000) for name in (*names, "longest_dispute")}
        inclusion = source.randrange(50_000)
        timing = replace(RUN.timing, **drawn)
        yield {
            **drawn,
            "inclusion_delay": inclusion,
            "unsettled": run_times.unsettled_rounds(timing, inclusion),
            "last_verdict": run_times.last_verdict(timing, inclusion),
            "slowest": run_times.slowest(timing, inclusion),
        }


def games(source: Random) -> Iterator[dict[str, Any]]:
    """The longest game on a claim of a shape, and R with what bond and bounty must pay for."""
    for arity in (2, 4, 8, 16, 32, 64):
        chain = replace(RUN.chain, gas_price=Wei(source.randrange(10**12)), data_price=Wei(source.randrange(10**9)))
        clocks = Clocks(budget=source.randrange(86_400), replay=source.randrange(3600), move=source.randrange(600))
        shapes = [Shape(steps=1, nodes=1, leaves=0, terms=1, slots=0), LARGEST]
        for bits in (3, 9, 20):
            shapes.append(Shape(*(source.randrange(1, 1 << bits) for _ in range(5))))
        yield {
            "arity": arity,
            **asdict(clocks),
            "gas_price": str(chain.gas_price),
            "data_price": str(chain.data_price),
            "replies": most_moves(LARGEST, arity)[0],
            "bond": str(run_times.min_challenge_bond(chain, arity)),
            "kept": str(run_times.min_kept(chain, arity)),
            "shapes": [[*map(str, [*asdict(shape).values(), longest_game(shape, arity, clocks)])] for shape in shapes],
        }


def reserves(source: Random) -> Iterator[dict[str, Any]]:
    """What a round sets aside."""
    for base in (RUN, WIDE):
        for seats in (1, base.training.seats):
            for pays, ppm in ((True, 1_000_000), (True, source.randrange(1, 1_000_000)), (False, 1_000_000)):
                charter = changed(base, "economics", pays=pays, wage=Wei(source.randrange(1, 1 << 70)))
                e, t = charter.economics, charter.training
                terms = ("unit_price", "wage", "merge_pay", "audit_ppm", "reaudit_ppm")
                yield {
                    **{name: str(getattr(e, name)) for name in terms},
                    "pays": pays,
                    "max_units": t.max_units,
                    "seats": t.seats,
                    "group_size": t.group_size,
                    "positions": t.positions,
                    "top_positions": t.top_positions,
                    "held": seats,
                    "price_ppm": ppm,
                    "reserved": str(cost_of(charter, seats, ppm)),
                    "wages": str(wages_of(e, seats)),
                }


def slots(source: Random) -> Iterator[dict[str, Any]]:
    """The slot at a position of a committee, by what it is drawn for: a group, the generation, a shift."""
    for group in (0, 31, None):
        for count in (1, 5, 1000):
            seed, round_, j = Digest(source.randbytes(32)), Round(source.randrange(1 << 24)), source.randrange(63)
            drawn_for = ids.generation_committee(round_) if group is None else ids.group_committee(round_, group)
            yield {"seed": seed.hex(), "round": round_, "group": group, "j": j, "count": count} | {
                "slot": _slot(seed, drawn_for, j, count),
                "shift_slot": _slot(seed, SHIFT_NODE, 0, count),
            }


def _slot(seed: Digest, committee: Digest, j: int, count: int) -> int:
    return int.from_bytes(keccak(abi.encode(["bytes32", "bytes32", "uint256"], [seed, committee, j])), "big") % count


def masks(source: Random) -> Iterator[dict[str, Any]]:
    """When a mask closes: seconds after T0 at which seats commit, in their order, and the last second with weight."""
    terms = terms_of(commit=1000, inclusion=200, grace=40)
    for seats in (1, 2, 3, 4, 19, 20, 21, 64):
        for share in (100, 97, 94, 70, 50):
            count = -(-seats * share // 100)
            late = source.choice((1, 500, 1200))
            at = sorted(source.randrange(late, 1201) for _ in range(count))
            state = RoundState(t0=0, mask_at=1200, seated=seats, committed=0, parent=0, base=mark("base"))
            for now in at:
                clock.close_mask(terms, state, now)
            yield {"commit": 1000, "inclusion": 200, "grace": 40, "seats": seats, "at": at, "mask": state.mask_at}


def beacon(source: Random) -> Iterator[dict[str, Any]]:
    """The first round of evmnet after a time, and when it is due."""
    genesis, period = EVMNET.genesis_time, EVMNET.period
    near = (genesis - 1, genesis, genesis + 1, genesis + period - 1, genesis + period)
    for time in (0, *near, source.randrange(1 << 40)):
        found = EVMNET.round_after(time)
        yield {"genesis": genesis, "period": period, "time": time, "round": found, "due": EVMNET.time_of(found)}


def text() -> str:
    """The document as it stands in the file: one line per case."""
    groups = []
    for make in (prices, times, games, reserves, slots, masks, beacon):
        cases = ",\n".join(json.dumps(case) for case in make(Random(f"vectors {make.__name__}")))
        groups.append(f'"{make.__name__}": [\n{cases}\n]')
    return "{" + ",\n".join(groups) + "}\n"


def main() -> None:
    """Write the file, or with --check exit 1 when it is stale."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PATH.read_text() == text() else f"{PATH.name} is stale: run `python -m tools.term_vectors`")
    PATH.write_text(text())


if __name__ == "__main__":
    main()
