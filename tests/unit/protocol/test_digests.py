"""Known answers for every digest, in tests/vectors/digests.json, for us and for implementations that are not ours.

`python -m tests.unit.protocol.test_digests` writes the file anew; a change in it is a change of the protocol.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from eth_abi import encode
from eth_hash.auto import keccak

from assay.protocol import digests
from assay.protocol.game.descent import position_key
from assay.protocol.game.state import DisputedClaim, GameState
from assay.protocol.game.table import Side, Stage
from assay.protocol.program.program import verify_descriptor
from assay.protocol.program.trace import ReferenceTrace
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.duty_types import DutyKind, ReplayFinding
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment, claim_id
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.trees import merkle, prefix, state
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Address, Digest, DType, Round, Seat
from tests.harness.programs import all_examples, round_scalars

PATH = Path(__file__).parents[2] / "vectors" / "digests.json"

RUN = Digest(sha256(b"run").digest())
CONTRACT, CLAIMANT = Address(bytes(range(20))), Address(bytes(range(20, 40)))


def numbered(count: int) -> list[Digest]:
    """sha256 of one byte 0, 1, ..., as stand-ins for digests."""
    return [Digest(sha256(bytes((i,))).digest()) for i in range(count)]


def compute() -> dict[str, Any]:
    """All vectors; bytes as hex."""
    roots = numbered(5)
    ref = ClaimRef(ClaimKind.ATTESTATION, Round(7), Seat(2), 4, CLAIMANT, roots[4])
    scalars = round_scalars(bytes(range(64)), seat=3, round_=5)
    claim = claim_id(31337, CONTRACT, RUN, ClaimKind.INTERVAL, CLAIMANT, roots[0], roots[1])
    return {
        "leaf": [
            {"data": d.hex(), "digest": digests.leaf_digest(d).hex()} for d in (b"", b"\x00", bytes(range(256)) * 4)
        ],
        "tree": [
            {"digests": _hex(numbered(n)), "root": merkle.root(numbered(n)).hex()} for n in (0, 1, 2, 3, 5, 6, 7, 8)
        ],
        "path": [
            {"count": 7, "index": i, "digest": d.hex(), "path": _hex(merkle.path(numbered(7), i))}
            for i, d in enumerate(numbered(7))
        ],
        "tensor": [
            {
                "dtype": dtype.name,
                "dims": list(dims),
                "bytes": data.hex(),
                "root": tensor_root(TensorSpec(dtype, dims), data).hex(),
            }
            for dtype, dims, data in (
                (DType.F32, (), b"\0\0\x80\x3f"),
                (DType.I32, (0, 4), b""),
                (DType.BOOL, (3,), b"\1\0\1"),
                (DType.U8, (2, 600), bytes(i % 256 for i in range(1200))),
                (DType.I64, (3, 100), bytes(i * 7 % 256 for i in range(2400))),
            )
        ],
        "list": [{"roots": _hex(numbered(n)), "root": state.list_root(numbered(n)).hex()} for n in (0, 1, 3)],
        "state": [
            {
                "lists": [_hex(numbered(n)) for n in sizes],
                "list_roots": _hex(state.list_roots([numbered(n) for n in sizes])),
                "root": state.state_root([numbered(n) for n in sizes]).hex(),
            }
            for sizes in ((1,), (2, 0, 3))
        ],
        "prefix": [
            {"roots": _hex(numbered(n)), "root": prefix.PrefixTree(numbered(n)).roots[n].hex()} for n in (0, 1, 2, 5)
        ],
        "program": [
            {
                "name": example.name,
                "header": example.program.header.hex(),
                "descriptors": [d.hex() for d in example.program.descriptors],
                "root": example.program.root.hex(),
                "x": [_hex(slots) for slots in example.state],
                "state": _hex([ReferenceTrace(example.program, example.state).state_root(t) for t in (0, 1)]),
            }
            for example in all_examples()
        ],
        "scalars": {
            "run": scalars.run.hex(),
            "seat": 3,
            "round": 5,
            "steps_per_round": 25,
            "shards": 2,
            "shard_length": 32,
            "lr": f"{scalars.lr:08x}",
            "data_root": scalars.data_root.hex(),
            "roots": _hex(scalars.roots()),
            "key": list(state.random_key(scalars.run, Seat(3), Round(5))),
            "initial_state": state.initial_state(roots[0], roots[1], scalars).hex(),
        },
        "claim": {
            "chain_id": 31337,
            "contract": CONTRACT.hex(),
            "run": RUN.hex(),
            "kind": 1,
            "claimant": CLAIMANT.hex(),
            "x": roots[0].hex(),
            "y": roots[1].hex(),
            "id": claim.hex(),
        },
        "challenge": {
            "kind": 4,
            "round": 7,
            "seat": 2,
            "duty": 4,
            "party": CLAIMANT.hex(),
            "outer_root": roots[4].hex(),
            "own_root": roots[0].hex(),
            "salt": roots[1].hex(),
            "sender": CONTRACT.hex(),
            "commitment": challenge_commitment(ref, roots[0], roots[1], CONTRACT).hex(),
        },
        "position": [
            {
                "claim_id": roots[0].hex(),
                "program": roots[1].hex(),
                "stage": stage,
                "step": step,
                "lo": 64,
                "hi": 1 << 20,
            }
            | {"agreed": roots[2].hex(), "disputed": roots[3].hex(), "key": standing(stage, step).hex()}
            for stage, step in ((Stage.STEPS, 0), (Stage.NODES, 7))
        ],
        "built": {
            "roots": _hex(roots),
            "mask": 0b10000101,
            "outer_state": digests.state_digest(roots[:2]).hex(),
            "update_input": digests.state_digest(roots[:2]).hex(),
            "update_state": digests.state_digest(roots[2:3]).hex(),
            "updates": _hex(numbered(8)),
            "merge_input": ids.merge_input(roots[0], roots[1], numbered(8), 0b10000101).hex(),
            "weights": WEIGHTS,
            "weighed_input": ids.weighed_input(roots[0], roots[1], numbered(8), WEIGHTS).hex(),
            "partial_input": ids.partial_input(numbered(8)).hex(),
        },
        "run": run_vector(),
        "work": work_vector(),
        "finding": finding_vector(),
        "draw": [draw_vector(TicketId(ticket), kind) for ticket, kind in ((1, DutyKind.WORK), (77, DutyKind.MISSED))],
        "threshold": [
            {"ppm": ppm, "on_call": on_call, "threshold": str(draws.threshold(ppm, on_call))}
            for ppm, on_call in (
                (0, 1),
                (1, 1),
                (100_000, 7),
                (999_999, 1),
                (1_000_000, 1),
                (2_999_999, 3),
                (3_000_000, 3),
            )
        ],
        "kept_list": [
            {"digests": _hex(numbered(n)), "hash": digests.digest_list_hash(numbered(n)).hex()} for n in (1, 3)
        ],
        "kept_parts": [{"parts": p, "hash": digests.integer_list_hash(p).hex()} for p in ([0], [-1, 5, 1 << 61])],
    }


WEIGHTS = [0, 1, 2, 3, 64, 255, 1023, 65_535]


def work_vector() -> dict[str, Any]:
    """A commitment, and an accumulator over three updates."""
    roots = numbered(6)
    work = SeatWork(40, roots[0], (roots[1], roots[2], roots[3]), roots[4])
    acc = Digest(bytes(32))
    for seat, update in enumerate(roots[:3]):
        acc = ids.accumulate(acc, Seat(seat), update, 40 + seat)
    over = ids.over_updates(roots[2], 5, acc)
    return {
        "round": 7,
        "seat": 2,
        "tenure": 9,
        "units": work.units,
        "marks": work.marks.hex(),
        "ends": _hex(work.ends),
        "update": work.update.hex(),
        "digest": ids.work_digest(Round(7), Seat(2), 9, work).hex(),
        "updates": _hex(roots[:3]),
        "accumulator": acc.hex(),
        "marked": _hex(roots),
        "marks_of": ids.marks_digest(roots).hex(),
        "seal": ids.seal_digest(Round(7), Seat(2), roots[0], over, roots[1], CLAIMANT).hex(),
        "counted": 5,
        "over": over.hex(),
        "sums": [[0, roots[1].hex(), 3], [2, roots[3].hex(), 1]],
        "over_sums": ids.over_sums(roots[2], [(0, roots[1], 3), (2, roots[3], 1)]).hex(),
        "who": CLAIMANT.hex(),
    }


def finding_vector() -> dict[str, Any]:
    """What a re-audit found, by which names it and its accusation go, and its state with a witness."""
    roots = numbered(8)
    key = Digest(roots[4][:8] + bytes(24))
    finding = ReplayFinding((roots[0], roots[1], roots[2]), roots[3], (key, roots[5]), (roots[6], roots[7]))
    return {
        "epoch": 5,
        "ticket": 77,
        "kind": int(DutyKind.REAUDIT),
        "target": roots[0].hex(),
        "id": draws.attestation_id(5, TicketId(77), DutyKind.REAUDIT, roots[0]).hex(),
        "against": roots[1].hex(),
        "accusation": draws.accusation_id(roots[0], roots[1]).hex(),
        "ends": _hex(finding.ends),
        "keys": _hex(finding.keys),
        "accumulators": _hex(finding.accumulators),
        "state": draws.witnessed_state(finding.ends, key, roots[6]).hex(),
    }


def draw_vector(ticket: TicketId, kind: DutyKind) -> dict[str, Any]:
    """A ticket's draw, its rank among others and its witness key."""
    secret, seed, target = numbered(3)
    drawn, below = draws.draw(secret, seed, target, ticket, kind), draws.threshold(300_000, 2)
    return {
        "secret": secret.hex(),
        "seed": seed.hex(),
        "target": target.hex(),
        "ticket": ticket,
        "kind": int(kind),
        "draw": str(drawn),
        "below": str(below),
        "rank": str(draws.rank_of(drawn, below)),
        "key": draws.witness_key(secret, seed, target, ticket, kind).hex(),
    }


def run_vector() -> dict[str, Any]:
    """Terms in which every number is another, a list of two and headers of different lengths."""
    roots = numbered(17)
    lengths = (11, 32, 33, 0, 65)
    programs = [(roots[2 * i + 6], roots[2 * i + 7], bytes(range(length))) for i, length in enumerate(lengths)]
    terms = (
        *(roots[0], CONTRACT, CLAIMANT, Address(bytes(range(40, 60))), 100, (1 << 40) - 1),
        (*range(101, 110), 0x3D4CCCCD, *roots[:6]),
        tuple(range((1 << 40) + 200, (1 << 40) + 216)),
        (1 << 100, True, *range(302, 311), *range(3_000_000_311, 3_000_000_318)),
        ((1 << 40) + 320, 321, 322),
        tuple(range(400, 404)),
        (*range(500, 503), 1 << 100, 504, 505),
        *programs,
        (CLAIMANT, CONTRACT),
        (CLAIMANT, *range((1 << 40) + 600, (1 << 40) + 605), *range(3_000_000_605, 3_000_000_609)),
    )
    return {"terms": _nested(terms), "run": RunCharter.from_tuple(terms).run.hex()}


def _nested(value: Any) -> Any:
    match value:
        case tuple():
            return [_nested(v) for v in value]
        case bytes():
            return value.hex()
        case bool():
            return value
        case _:
            return str(value)


def standing(stage: Stage, step: int) -> Digest:
    """The position's key of a game that stands here."""
    roots = numbered(5)
    claim = DisputedClaim(roots[0], CLAIMANT, roots[4], roots[4], roots[1], 9, roots[4])
    game = GameState(5, claim, CONTRACT, stage, Side.DEFENDER, 11, 12, (13, 14), lo=64, hi=1 << 20, step=step)
    return position_key(replace(game, agreed=roots[2], disputed=roots[3]))


def _hex(values: Any) -> list[str]:
    return [v.hex() for v in values]


@pytest.mark.parametrize("kind", sorted(compute()))
def test_digests_are_the_known_answers(kind: str) -> None:
    known = json.loads(PATH.read_text())
    assert compute()[kind] == known[kind]


def test_the_file_names_no_digest_that_we_do_not_compute() -> None:
    assert set(json.loads(PATH.read_text())) == set(compute())


def test_the_known_answers_are_the_preimages_of_the_text() -> None:
    known = json.loads(PATH.read_text())
    for vector in known["leaf"]:
        assert sha256(b"\x00" + bytes.fromhex(vector["data"])).hexdigest() == vector["digest"]
    for vector in known["state"]:
        roots = b"".join(state.list_root([bytes.fromhex(r) for r in slots]) for slots in vector["lists"])
        assert sha256(b"\x03" + bytes((len(vector["lists"]),)) + roots).hexdigest() == vector["root"]
    for vector in known["list"]:
        tree = merkle.root([bytes.fromhex(r) for r in vector["roots"]])
        assert sha256(b"\x05" + len(vector["roots"]).to_bytes(4, "big") + tree).hexdigest() == vector["root"]
    for vector in known["program"]:
        leaves = [sha256(b"\x00" + bytes.fromhex(d)).digest() for d in vector["descriptors"]]
        preimage = b"\x06" + bytes.fromhex(vector["header"]) + merkle.root(leaves)
        assert sha256(preimage).hexdigest() == vector["root"]


def test_claim_digests_are_what_abi_encode_gives() -> None:
    roots = numbered(5)
    kinds = ["uint256", "address", "bytes32", "uint8", "uint8", "address", "bytes32", "bytes32"]
    fields = [31337, CONTRACT, RUN, 1, 0, CLAIMANT, roots[0], roots[1]]
    assert claim_id(31337, CONTRACT, RUN, ClaimKind.INTERVAL, CLAIMANT, roots[0], roots[1]) == keccak(
        encode(kinds, fields)
    )

    ref = ClaimRef(ClaimKind.OUTER, Round(7), Seat(2), 4, CLAIMANT, roots[4])
    struct = "(uint8,uint64,uint32,uint32,address,bytes32)"
    expected = encode(
        [struct, "bytes32", "bytes32", "address"], [(3, 7, 2, 4, CLAIMANT, roots[4]), roots[0], roots[1], CONTRACT]
    )
    assert challenge_commitment(ref, roots[0], roots[1], CONTRACT) == keccak(expected)

    kinds = ["bytes32", "bytes32", *["uint256"] * 4, "bytes32", "bytes32"]
    expected = encode(kinds, [roots[0], roots[1], 2, 7, 64, 1 << 20, roots[2], roots[3]])
    assert standing(Stage.NODES, 7) == keccak(expected)

    assert digests.digest_list_hash(roots) == keccak(encode(["bytes32[]"], [roots])[64:])
    assert digests.integer_list_hash([-3, 1 << 254]) == keccak(encode(["int256[]"], [[-3, 1 << 254]])[64:])


def test_digests_of_different_kinds_differ_over_the_same_bytes() -> None:
    a, b = numbered(2)
    found = {
        digests.leaf_digest(a + b),
        digests.node_digest(a, b),
        digests.prefix_digest(a, b),
        digests.state_digest([a, b]),
        digests.list_digest(2, a),
        digests.program_digest(a, b),
        digests.tensor_digest(DType.F32, (), a),
    }
    assert len(found) == 7


def test_every_descriptor_opens_under_the_program_root_at_its_index_only() -> None:
    for example in all_examples():
        program = example.program
        count = len(program.nodes)
        for k, descriptor in enumerate(program.descriptors):
            path = program.tree.path(k)
            assert verify_descriptor(program.root, program.header, count, k, descriptor, path)
            assert not verify_descriptor(program.root, program.header, count, k, descriptor + b"\0", path)
            assert not verify_descriptor(program.root, program.header, count, k ^ 1, descriptor, path)
            assert not verify_descriptor(program.root, program.header[:-1] + b"\x7f", count, k, descriptor, path)


if __name__ == "__main__":
    PATH.write_text(json.dumps(compute(), indent=1) + "\n")
    print(f"wrote {PATH}")
