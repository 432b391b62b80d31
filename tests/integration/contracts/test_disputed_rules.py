"""Every update rule and every merge, disputed: a lie inside it, played on the real game to the element that is false.

The rules are those of `captured_rules`, which are made from the enums. At length a lie begins in a node of every family
that a rule has, and the honest defend themselves against the same lie.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from assay.bench.compare import METHODS, ComparedRun, Training, setting_of
from assay.bench.methods.trained import PresetModel
from assay.engine.runtime.trace import TorchTrace
from assay.protocol.arithmetic.words import canonical, from_bytes, to_bytes
from assay.protocol.game.player_values import Position
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.program.nodes import Family
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training import programs
from assay.training.data import corpus_from_text
from assay.training.presets import TINY
from assay.training.robust import MergeKind
from assay.training.updates import SUM_WIRES, UpdateWire
from assay_solver.lies import Change, Lie, flipped, is_computed
from tests.harness.actors.families import has_parts
from tests.harness.contracts.battles import battle
from tests.harness.contracts.captured_rules import RULES, SUMS, TEXT, rule
from tests.harness.contracts.game_chain import Twin
from tests.harness.games import config

torch.set_num_threads(1)

ARITY = 16
TRIED = 12
"""Nodes of a family in which a lie is tried, the largest first: of some no single element reaches the end."""

IN_THE_GATE = ("int4 update", "bf16 merge", "median of updates", "merge of sums", "sum as int8")


def families_of(name: str) -> list[Family]:
    """The families of nodes that a rule's program computes, the rarest first."""
    program, _ = rule(name)
    counts = {
        family: sum(node.family is family for k, node in enumerate(program.nodes) if is_computed(program, k))
        for family in Family
    }
    return sorted((f for f in counts if counts[f]), key=lambda f: (counts[f], f))


def lies_in(name: str, family: Family) -> Iterator[tuple[int, Lie]]:
    """Lies that begin in the largest nodes of a family: of the first element, of all places, of all values."""
    program, _ = rule(name)
    nodes = [k for k, node in enumerate(program.nodes) if node.family is family and is_computed(program, k)]
    for k in sorted(nodes, key=lambda k: -program.specs[k].numel)[:TRIED]:
        spec, size = program.specs[k], program.specs[k].dtype.size
        changes: tuple[Change, ...] = (
            lambda data, spec=spec: flipped(spec, data),
            lambda data, size=size: data[size:] + data[:size],
            lambda data, spec=spec: further(spec, data, 6),
            lambda data, spec=spec: further(spec, data, 8 * spec.dtype.size - 2),
            lambda data: bytes(len(data)),
        )
        for change in changes:
            yield k, Lie({(1, k): change})


def further(spec: TensorSpec, data: bytes, bit: int) -> bytes:
    """The first element with a higher bit flipped: an exponent of a row that is one too large loses nothing yet."""
    (word,) = from_bytes(spec.dtype, data[: spec.dtype.size])
    bent = canonical(spec.dtype, word ^ (1 if spec.dtype is DType.BOOL else 1 << bit))
    return to_bytes(spec.dtype, [bent]) + data[spec.dtype.size :]


def lying(name: str, family: Family, honest: TorchTrace) -> tuple[int, TorchTrace] | None:
    """A trace whose lie begins in a node of this family and reaches Y; None where none was found that does.

    It is one that parts can stand for: its liar has a reply to the end, where it would lose by its silence otherwise.
    """
    program, state = rule(name)
    for k, lie in lies_in(name, family):
        trace = TorchTrace(program, state, tamper=lie)
        if trace.state_root(1) == honest.state_root(1):
            continue
        lied, true = (from_bytes(program.specs[k].dtype, t.node_bytes(1, k)) for t in (trace, honest))
        if has_parts(Position(honest, 1, k), lied, true):
            return k, trace
    return None


def check_dispute(name: str, family: Family, honest: TorchTrace, number: int, twin: Twin) -> bool:
    """Whether a lie in this family reaches Y; who defends it loses at its element, who attacks by it as well."""
    found = lying(name, family, honest)
    if found is None:
        return False
    k, liar = found
    for defends, challenges, loser in ((liar, honest, Side.DEFENDER), (honest, liar, Side.CHALLENGER)):
        end = battle(twin, defends, challenges, 2 * number + (loser is Side.CHALLENGER), lock=10**18)
        verdict = end.verdict
        assert verdict is not None and verdict.outcome is Outcome.LEAF and verdict.side is loser
        assert (verdict.node, verdict.family) == (k, family)
        assert (verdict.expected == verdict.claimed) == (loser is Side.CHALLENGER)
    return True


def disputed(name: str, families: list[Family]) -> list[Family]:
    """Those of these families in which a lie was played."""
    program, state = rule(name)
    honest, twin = TorchTrace(program, state), Twin(program, config(ARITY))
    found = [f for number, f in enumerate(families) if check_dispute(name, f, honest, number, twin)]
    twin.check_money()
    return found


@pytest.mark.gate_takes(2)
@pytest.mark.parametrize("name", IN_THE_GATE)
def test_a_lie_inside_a_rule_ends_at_its_one_element(name: str) -> None:
    rarest = families_of(name)[:1]
    assert disputed(name, rarest) == rarest


@pytest.mark.long
@pytest.mark.parametrize("name", RULES)
def test_a_lie_in_any_family_of_any_rule_ends_at_its_one_element(name: str) -> None:
    families = families_of(name)
    played = disputed(name, families)
    print(name, [f.name for f in families], [f.name for f in families if f not in played])
    assert played == families


def test_every_update_and_every_merge_is_among_the_rules_that_are_disputed() -> None:
    for wire in UpdateWire:
        assert {f"{wire.value} {what}" for what in ("update", "merge", "sum")} <= RULES.keys()
    for kind in MergeKind:
        assert kind is MergeKind.MEAN or {f"{kind.value} of updates", f"{kind.value} of a group"} <= RULES.keys()
    for wire in SUM_WIRES[1:]:
        assert {f"sum as {wire.value}", f"merge of {wire.value} sums"} <= RULES.keys()
    assert "merge of sums" in SUMS


TERMS = ("kind", "wire", "sums", "carrier", "statistics")


@pytest.mark.long
def test_what_any_method_computes_is_among_the_rules_that_are_disputed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: a method whose own program no leaf was ever compared with. The step of a preset is tried by itself."""
    asked: set[tuple[str, ...]] = set()
    inner = programs.cached_program

    def listen(description, make):
        asked.add(tuple(str(description.get(term, "")) for term in TERMS))
        return inner(description, make)

    monkeypatch.setattr(programs, "cached_program", listen)
    rule.cache_clear()
    for name in RULES:
        rule(name)
    known, model = set(asked), PresetModel(TINY, corpus_from_text(TEXT))
    for name, method in METHODS.items():
        job = ComparedRun(name, "tiny", workers=2, seed=1, rounds=1, inner_steps=2)
        Training(job, model) if method.begin is None else method.begin(setting_of(job, model))
    assert {terms for terms in asked - known if terms[0] != "training"} == set()
