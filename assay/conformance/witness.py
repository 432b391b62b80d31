"""Witnessed programs with known answers: which one follows from a step program, and what a step of it accumulates.

The file witness.json of tests/vectors; its fields are explained in the README beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.conformance.nodes import RunNodes
from assay.conformance.rules import Case
from assay.protocol.program.programfile import decode_program
from assay.protocol.program.wellformed import is_well_formed
from assay.protocol.program.witness import witness_lists, witnessed_program
from assay.protocol.program.witness_rows import NoWitness


def derivations(document: Any) -> Iterator[Case]:
    """The root that follows from each program, or the rule by which none does."""
    for case in document["cases"]:
        yield case["what"], _derived(bytes.fromhex(case["program"])), case["rule"] or case["root"]


def accumulators(document: Any, run: RunNodes) -> Iterator[Case]:
    """The accumulator after one step, of the cases that give a state."""
    for case in document["cases"]:
        if "x" in case:
            program = witnessed_program(decode_program(bytes.fromhex(case["program"])))
            state = [[bytes.fromhex(slot) for slot in part] for part in case["x"]]
            found = run(program, [*state, *map(list, witness_lists([int(w, 16) for w in case["key"]]))])
            yield case["what"], found[-1][0].hex(), case["accumulator"]


def _derived(file: bytes) -> str:
    plain = decode_program(file)
    if not is_well_formed(plain):
        return "WT-1"
    try:
        return witnessed_program(plain).root.hex()
    except NoWitness as error:
        return error.rule
