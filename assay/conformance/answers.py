"""Known answers, checked here and now: does this machine compute what the protocol says?

The files of tests/vectors: arithmetic.json (operations, functions, roundings, Philox), nodes.json (whole programs),
rules.json (what is refused), elements.json, witness.json (witnessed programs), digests.json and
beacon.json. Another implementation runs the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from assay.checkout import ROOT
from assay.conformance import nodes, witness
from assay.conformance import rules as refusals
from assay.conformance.by_triton import ByTriton
from assay.conformance.rules import Case
from assay.protocol import digests
from assay.protocol.arithmetic import philox, rounding
from assay.protocol.arithmetic.scalar import SIGNATURES, Op, ScalarProgram, evaluate
from assay.protocol.arithmetic.words import from_bytes as words_of
from assay.protocol.arithmetic.words import sign_extend
from assay.protocol.digests import ZERO
from assay.protocol.errors import ConfigError
from assay.protocol.game.descent import position_key
from assay.protocol.game.state import DisputedClaim, GameState
from assay.protocol.game.table import Side, Stage
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import verify_descriptor
from assay.protocol.rounds import duty_draws, ids
from assay.protocol.rounds.duty_types import DutyKind
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment, claim_id
from assay.protocol.trees import merkle, prefix, state
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Address, Digest, DType, Round, Seat
from assay_ledger.json_input import JsonRefused, parse_json

MAX_BYTES: Final = 16 << 20
MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Tally:
    """How an implementation did in one group of cases; `first` names the first that differs.

    An error ends a group and counts as one more that is wrong. skipped: why it could not be run here, with no cases;
    None when it was.
    """

    implementation: str
    group: str
    cases: int
    wrong: int
    first: str | None
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutorResult:
    """Whether an executor gives every known answer; None where it is absent. reason: why it is, or what differs."""

    executor: str
    equal: bool | None
    cases: int
    reason: str | None


class VectorsMissing(ConfigError):
    """The files of known answers are not where they were looked for."""

    remedy = "Run it in a checkout, or name the folder with --vectors (tests/vectors of the sources)."


def default_vectors() -> Path:
    """The folder of known answers of this checkout."""
    return ROOT / "tests" / "vectors"


def check_all(folder: Path, *, gpu_first: bool = False) -> Iterator[Tally]:
    """Every group against every implementation, one after another; what cannot run here is skipped by name.

    gpu_first: what runs on a GPU before all else. An executor that raises an error is wrong in that group. Raises
    VectorsMissing.
    """
    names = ("arithmetic", "beacon", "digests", "elements", "nodes", "rules", "witness")
    files = (_read(folder / f"{name}.json") for name in names)
    arithmetic, beacons, hashes, elements, programs, rules, witnesses = files
    groups: list[tuple[str, str, Iterator[Case]]] = [
        ("reference", "roundings", _roundings(arithmetic)),
        ("reference", "random", _random(arithmetic["random"])),
        ("reference", "digests", _digests(hashes)),
        ("reference", "rules", refusals.rules(rules)),
        ("reference", "elements", refusals.elements(elements)),
        ("reference", "witness", witness.derivations(witnesses)),
    ]
    skipped = []
    vectors = nodes.read(programs)
    for executor in nodes.executors():
        if isinstance(executor, nodes.Absent):
            skipped.append(Tally(executor.name, "programs", 0, 0, None, executor.reason))
            continue
        name, run = executor

        def asked(run: nodes.RunNodes, name: str = name) -> list[tuple[str, str, Iterator[Case]]]:
            scalar = _by_reference if name == "reference" else partial(_by_executor, run)
            return [
                (name, "operations", _operations(arithmetic["operations"], scalar)),
                (name, "functions", _functions(arithmetic["functions"], scalar)),
                (name, "programs", nodes.check(vectors, run)),
                (name, "accumulators", witness.accumulators(witnesses, run)),
            ]

        groups += asked(run)
        if isinstance(run, ByTriton) and nodes.is_on_gpu(name):
            run.rehearse(cases for *_, cases in asked(run.rehearsed))
    if gpu_first:
        groups.sort(key=lambda group: not nodes.is_on_gpu(group[0]))
    groups.append(("py_ecc", "beacon", _beacon(beacons)))
    for implementation, group, cases in groups:
        try:
            yield _tally(implementation, group, cases)
        except ModuleNotFoundError as error:  # the others are asked all the same
            yield Tally(implementation, group, 0, 0, None, f"{error.name} is not installed")
    yield from skipped


def executor_results(tallies: Sequence[Tally]) -> list[ExecutorResult]:
    """What became of every executor, in the order of their tallies: those that run programs, or would."""
    found = []
    for name in dict.fromkeys(t.implementation for t in tallies if t.group == "programs"):
        own = [t for t in tallies if t.implementation == name]
        absent = next((t.skipped for t in own if t.skipped), None)
        first = next((f"{t.group}: {t.first}" for t in own if t.wrong), None)
        equal = None if absent else first is None
        found.append(ExecutorResult(name, equal, sum(t.cases for t in own), absent or first))
    return found


def _read(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes(), max_bytes=MAX_BYTES)
    except OSError:
        raise VectorsMissing(f"{path} cannot be read.") from None
    except JsonRefused as refused:
        raise VectorsMissing(f"{path} is damaged: {refused}.", code="VectorsDamaged") from None


def _tally(implementation: str, group: str, cases: Iterator[Case]) -> Tally:
    count, wrong, first = 0, 0, None
    try:
        for name, got, known in cases:
            count += 1
            if got != known:
                wrong += 1
                first = first or f"{name}: {got} instead of {known}"
    except ModuleNotFoundError:
        raise
    except Exception as error:  # whatever it is: all that is asked here is defined
        count, wrong = count + 1, wrong + 1
        first = first or f"{type(error).__name__} after {count - 1} cases: {error}"
    return Tally(implementation, group, count, wrong, first)


# --- arithmetic

RunScalar = Callable[[ScalarProgram, list[list[int]]], list[int]]
"""A program on columns of operand words: the result word of every row."""


def _by_reference(program: ScalarProgram, columns: list[list[int]]) -> list[int]:
    code = program.encode()
    rows = zip(*columns, strict=True) if columns else [()]
    return [evaluate(code, row) & MASK for row in rows]


def _by_executor(run: nodes.RunNodes, program: ScalarProgram, columns: list[list[int]]) -> list[int]:
    """The scalar program as a program of one map."""
    count = len(columns[0]) if columns else 1
    b = ProgramBuilder([[TensorSpec(d, (count,)) for d in program.operands]])
    out = b.map(program, [b.input(0, k) for k in range(len(columns))], (count,))
    x = [
        b"".join((w & ((1 << 8 * d.size) - 1)).to_bytes(d.size, "little") for w in words)
        for d, words in zip(program.operands, columns, strict=True)
    ]
    ((data,),) = run(b.build([[out]]), [x])
    return [w & MASK for w in words_of(out.dtype, data)]


def _operations(document: dict[str, Any], run: RunScalar) -> Iterator[Case]:
    for name, entry in sorted(document.items()):
        operands = (DType.BOOL, DType.I64, DType.I64) if name == "SELECT" else SIGNATURES[Op[name]][0]
        if "codes" in entry:
            for code, known in zip(entry["codes"], entry["results"], strict=True):
                # A constant that no well-formed program holds has no other reader than the reference.
                program = _program(code, ())
                if run is _by_reference or _is_canonical(name, code):
                    yield f"{name} {code}", run(program, [])[0], _word(known)
            continue
        *columns, results = _columns(entry["words"], entry["operands"] + 1)
        found = run(_program(entry["code"], operands), columns)
        for k, (got, known) in enumerate(zip(found, results, strict=True)):
            yield f"{name} row {k}", got, known


def _is_canonical(name: str, code: str) -> bool:
    from assay.protocol.arithmetic import f32

    immediate = int(code[-8:], 16)
    if name == "CONST_F32":
        return f32.canonical(immediate) == immediate
    return name != "CONST_BOOL" or immediate <= 1


def _functions(document: dict[str, Any], run: RunScalar) -> Iterator[Case]:
    for name, entry in sorted(document.items()):
        operand, results = _columns(entry["words"], 2)
        columns = [operand]
        for code in entry["codes"]:
            columns.append(run(_program(code, (DType.F32,) * len(columns)), columns))
        for k, (got, known) in enumerate(zip(columns[-1], results, strict=True)):
            yield f"{name} of 0x{operand[k]:08x}", got, known


def _roundings(document: dict[str, Any]) -> Iterator[Case]:
    for total, n, known in _rows(document["finish"], 3):
        yield f"finish({_signed(total)}, {_signed(n)})", rounding.finish(_signed(total), _signed(n)), known
    for x, p, e, known in _rows(document["quantize"], 4):
        yield f"quantize(0x{x:08x}, {p}, {_signed(e)})", rounding.quantize(x, p, _signed(e)) & MASK, known


def _random(words: Sequence[str]) -> Iterator[Case]:
    for element, stream, low, high, k0, k1, known in _rows(words, 7):
        word = sign_extend(philox.random_word(element, stream, (low, high), (k0, k1)), 32)
        yield f"element {element}", word & MASK, known


def _program(code: str, operands: Sequence[DType]) -> ScalarProgram:
    return ScalarProgram.decode(bytes.fromhex(code[2:]), operands)


def _rows(words: Sequence[str], width: int) -> Iterator[list[int]]:
    values = [_word(w) for w in words]
    for start in range(0, len(values), width):
        yield values[start : start + width]


def _columns(words: Sequence[str], width: int) -> list[list[int]]:
    return [list(column) for column in zip(*_rows(words, width), strict=True)]


def _word(text: str) -> int:
    return int(text, 16)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


# --- digests


def _digests(document: dict[str, Any]) -> Iterator[Case]:
    for entry in document["leaf"]:
        yield "leaf", digests.leaf_digest(bytes.fromhex(entry["data"])).hex(), entry["digest"]
    for entry in document["tree"]:
        yield "tree", merkle.root(_list(entry["digests"])).hex(), entry["root"]
    for entry in document["tensor"]:
        spec = TensorSpec(DType[entry["dtype"]], tuple(entry["dims"]))
        yield "tensor", tensor_root(spec, bytes.fromhex(entry["bytes"])).hex(), entry["root"]
    for entry in document["list"]:
        yield "list", state.list_root(_list(entry["roots"])).hex(), entry["root"]
    for entry in document["state"]:
        yield "state", state.state_root([_list(each) for each in entry["lists"]]).hex(), entry["root"]
    for entry in document["prefix"]:
        yield "prefix", prefix.PrefixTree(_list(entry["roots"])).roots[-1].hex(), entry["root"]
    for entry in document["program"]:
        yield from _program_cases(entry)
    for entry in document["kept_list"]:
        yield "kept list", digests.digest_list_hash(_list(entry["digests"])).hex(), entry["hash"]
    for entry in document["kept_parts"]:
        yield "kept parts", digests.integer_list_hash(entry["parts"]).hex(), entry["hash"]
    yield from _claim_cases(document)


def _program_cases(entry: dict[str, Any]) -> Iterator[Case]:
    tree = merkle.Tree([digests.leaf_digest(bytes.fromhex(d)) for d in entry["descriptors"]])
    header, root = bytes.fromhex(entry["header"]), _digest(entry["root"])
    yield f"program {entry['name']}", digests.program_digest(header, tree.root).hex(), entry["root"]
    for k, descriptor in enumerate(entry["descriptors"]):
        count = len(entry["descriptors"])
        fits = verify_descriptor(root, header, count, k, bytes.fromhex(descriptor), tree.path(k))
        yield f"node {k} of {entry['name']}", fits, True


def _claim_cases(document: dict[str, Any]) -> Iterator[Case]:
    c = document["claim"]
    name = claim_id(
        c["chain_id"],
        _address(c["contract"]),
        _digest(c["run"]),
        ClaimKind(c["kind"]),
        _address(c["claimant"]),
        _digest(c["x"]),
        _digest(c["y"]),
    )
    yield "claim id", name.hex(), c["id"]
    b = document["challenge"]
    ref = ClaimRef(
        ClaimKind(b["kind"]),
        Round(b["round"]),
        Seat(b["seat"]),
        b["duty"],
        _address(b["party"]),
        _digest(b["outer_root"]),
    )
    committed = challenge_commitment(ref, _digest(b["own_root"]), _digest(b["salt"]), _address(b["sender"]))
    yield "challenge", committed.hex(), b["commitment"]
    yield from _round_cases(document)
    for p in document["position"]:
        yield f"position at {Stage(p['stage']).name}", position_key(_standing(p)).hex(), p["key"]


def _round_cases(document: dict[str, Any]) -> Iterator[Case]:
    w, f = document["work"], document["finding"]
    ends = _digest(w["ends"][0]), _digest(w["ends"][1]), _digest(w["ends"][2])
    work = SeatWork(w["units"], _digest(w["marks"]), ends, _digest(w["update"]))
    named = ids.work_digest(Round(w["round"]), Seat(w["seat"]), w["tenure"], work)
    yield "a commitment", named.hex(), w["digest"]
    ticket, kind, target = TicketId(f["ticket"]), DutyKind(f["kind"]), _digest(f["target"])
    yield "a finding", duty_draws.attestation_id(f["epoch"], ticket, kind, target).hex(), f["id"]
    yield "an accusation", duty_draws.accusation_id(target, _digest(f["against"])).hex(), f["accusation"]
    for d in document["draw"]:
        secret, seed, target = _list([d["secret"], d["seed"], d["target"]])
        given = secret, seed, target, TicketId(d["ticket"]), DutyKind(d["kind"])
        yield "a draw", str(duty_draws.draw(*given)), d["draw"]
        yield "a witness key", duty_draws.witness_key(*given).hex(), d["key"]
    for t in document["threshold"]:
        yield "a threshold", str(duty_draws.threshold(t["ppm"], t["on_call"])), t["threshold"]


def _standing(p: dict[str, Any]) -> GameState:
    """A game that stands at a position; what else is in it counts for nothing."""
    none = Address(bytes(20))
    claim = DisputedClaim(_digest(p["claim_id"]), none, ZERO, ZERO, _digest(p["program"]), 0, ZERO)
    game = GameState(0, claim, none, Stage(p["stage"]), Side.DEFENDER, 0, 0, (0, 0), lo=p["lo"], hi=p["hi"])
    return replace(game, step=p["step"], agreed=_digest(p["agreed"]), disputed=_digest(p["disputed"]))


def _digest(text: str) -> Digest:
    return Digest(bytes.fromhex(text))


def _address(text: str) -> Address:
    return Address(bytes.fromhex(text))


def _list(texts: Sequence[str]) -> list[Digest]:
    return [_digest(t) for t in texts]


# --- beacon


def _beacon(document: dict[str, Any]) -> Iterator[Case]:
    from assay.protocol.run.beacon import DrandNetwork, randomness, signed_message
    from assay.protocol.types import BeaconRound
    from assay_ledger.keys import bn254

    for hashed in document["hashes"]:
        x, y = bn254.hash_to_g1(_hex(hashed["message"]), hashed["tag"].encode())
        yield "a message on the curve", f"0x{x:064x}{y:064x}", hashed["point"]
    keys = {"local": _hex(document["local"]["public_key"])}
    for name, info in document["networks"].items():
        keys[name], seed = _hex(info["public_key"]), _hex(info["genesis_seed"])
        network = DrandNetwork(info["beacon_id"], keys[name], info["genesis_time"], info["period"], seed)
        yield f"the chain of {name}", "0x" + network.chain_hash.hex(), info["chain_hash"]
    rounds = [*document["rounds"], *({"network": "local", **entry} for entry in document["local"]["rounds"])]
    for entry in rounds:
        label, signature = f"round {entry['round']} of {entry['network']}", _hex(entry["signature"])
        message = signed_message(BeaconRound(entry["round"]))
        yield label, bn254.verify(keys[entry["network"]], signature, message), True
        if "randomness" in entry:
            yield f"{label}, randomness", "0x" + randomness(signature).hex(), entry["randomness"]
    first = document["rounds"][0]
    later = signed_message(BeaconRound(first["round"] + 1))
    yield (
        "a signature of the round before",
        bn254.verify(keys[first["network"]], _hex(first["signature"]), later),
        False,
    )


def _hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))
