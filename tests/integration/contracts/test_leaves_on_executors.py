"""Every leaf contract against both executors, on nodes of captured training programs that read hostile values.

Between nodes a hook puts NaN, infinities, subnormals, zeros of both signs, ties, extreme integers and rows at the edges
of the exponent in place of what was computed. So every node computes from values that are known and hostile, by the
kernels that it has in its program. Stock torch and native kernels must write the same bytes in every node, and the
contract, from openings of what was read, the same element.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.engine.runtime.executor import KernelVariant, usable_natives
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.arithmetic.words import canonical
from assay.protocol.arithmetic.words import from_bytes as words_of
from assay.protocol.program.nodes import Family, Output
from assay.protocol.program.program import Program
from assay.protocol.types import DType
from tests.harness.contracts.captured import LONG_SUBJECTS, SUBJECTS, Instrumented, Noise, executor_of, subject
from tests.harness.contracts.harness import EvmContract
from tests.harness.contracts.leaf_cases import CONTRACTS
from tests.harness.contracts.leaf_openings import Opener, computed

TERMS = 512
"""Most terms of an element that the contract computes here, every one of them from openings."""

LeafWorld = tuple[EvmContract, dict[Family, EvmContract]]
"""The harness that loads openings, and the leaf contracts."""

VARIANTS = (KernelVariant.STOCK, KernelVariant.FUSED) if usable_natives()[0] is not None else (KernelVariant.STOCK,)


def candidates(program: Program, family: Family) -> list[int]:
    """The nodes of a family whose elements a test can compute term by term."""
    return [
        k
        for k, node in enumerate(program.nodes)
        if node.family is family and node.spec.numel and getattr(node, "terms", 1) <= TERMS
    ]


def choose(dtype: DType, data: bytes, rng: Random) -> int:
    """An element: any, or one that is an ordinary number, lest most be NaN."""
    if dtype is DType.F32 and rng.random() < 0.7:
        x = np.frombuffer(data, np.uint32)
        ordinary = np.flatnonzero(((x & 0x7F800000) != 0x7F800000) & ((x & 0x7FFFFFFF) != 0))
        if len(ordinary):
            return int(ordinary[rng.randrange(len(ordinary))])
    return rng.randrange(len(data) // dtype.size)


def fuzz(name: str, noise: Noise, rng: Random, world: LeafWorld, elements: int) -> None:
    """One run by each executor, and elements of nodes of every family by the contract."""
    harness, leaves = world
    program, inputs = subject(name)
    runs = [Instrumented(executor_of(name, variant), inputs, noise) for variant in VARIANTS]
    first = runs[0]
    for other in runs[1:]:
        differing = [k for k, (a, b) in enumerate(zip(first.wrote, other.wrote, strict=True)) if a != b]
        assert not differing, [(k, program.nodes[k].family.name, program.specs[k].dims) for k in differing[:5]]
    for family, leaf in leaves.items():
        nodes = candidates(program, family)
        for k in rng.choices(nodes, k=elements) if nodes else ():
            spec, data = program.specs[k], first.wrote[k]
            element = choose(spec.dtype, data, rng)
            (written,) = words_of(spec.dtype, data[element * spec.dtype.size : (element + 1) * spec.dtype.size])
            assert canonical(spec.dtype, written) == written
            found = computed(leaf, Opener(first, k, harness), program.descriptors[k], element, TERMS)
            assert found == written, (k, family.name, element, program.nodes[k])


def check_uninstrumented(name: str, noise: Noise) -> None:
    """A plain run, in groups and blocks, ends as an instrumented one on the same hostile inputs."""
    program, inputs = subject(name)
    count = iter(range(len(program.nodes)))
    hostile = [[noise(next(count), value) for value in part] for part in inputs]
    # A slot that is passed on keeps its payloads in memory; its canonical bytes are compared.
    ends = [[to_bytes(t) for part in executor_of(name, variant).run(hostile) for t in part] for variant in VARIANTS]
    instrumented = Instrumented(executor_of(name, KernelVariant.STOCK), inputs, noise)
    outputs = [instrumented.wrote[k] for k, node in enumerate(program.nodes) if isinstance(node, Output)]
    assert all(end == outputs for end in ends)


DRAWN = {
    "seed": st.integers(0, 2**32 - 1),
    "rate": st.sampled_from((0.02, 0.1, 0.4)),
    "wild": st.booleans(),
    "inputs_only": st.booleans(),
}


def _fuzzed(name: str, world: LeafWorld, drawn: dict[str, Any], elements: int) -> None:
    noise = Noise(subject(name)[0], **drawn)
    fuzz(name, noise, Random(drawn["seed"]), world, elements)
    if drawn["inputs_only"]:
        check_uninstrumented(name, noise)


@pytest.mark.parametrize("name", SUBJECTS)
@settings(max_examples=3)
@given(drawn=st.fixed_dictionaries(DRAWN))
@pytest.mark.gate_takes(2)
def test_a_leaf_computes_what_both_executors_compute(name, leaf_harness, leaves, drawn) -> None:
    _fuzzed(name, (leaf_harness, leaves), drawn, elements=2)


@pytest.mark.long
@pytest.mark.parametrize("name", [*SUBJECTS, *LONG_SUBJECTS])
@settings(max_examples=60)
@given(drawn=st.fixed_dictionaries(DRAWN))
def test_a_leaf_computes_what_both_executors_compute_at_length(name, leaf_harness, leaves, drawn) -> None:
    _fuzzed(name, (leaf_harness, leaves), drawn, elements=4)


@pytest.mark.long
def test_every_family_is_fuzzed_and_by_native_kernels_but_for_ranks() -> None:
    present = {f for name in SUBJECTS for f in CONTRACTS if candidates(subject(name)[0], f)}
    assert present == set(CONTRACTS)
    if KernelVariant.FUSED in VARIANTS:
        native = {
            node.family
            for name in SUBJECTS
            for k, node in enumerate(subject(name)[0].nodes)
            if k not in executor_of(name, KernelVariant.FUSED).fallbacks
        }
        assert set(CONTRACTS) - native == {Family.RANK}


def test_noise_is_the_same_twice_and_alters_what_it_should() -> None:
    program, inputs = subject("llama")
    runs = [
        Instrumented(executor_of("llama", KernelVariant.STOCK), inputs, Noise(program, 7, rate=0.4, wild=True))
        for _ in range(2)
    ]
    assert (runs[0].wrote, runs[0].read) == (runs[1].wrote, runs[1].read)
    pairs = zip(program.nodes, runs[0].wrote, runs[0].read, strict=True)
    altered = {node.family for node, wrote, read in pairs if wrote != read}
    assert {Family.INPUT, Family.MAP, Family.DOT} <= altered
    assert not altered & {Family.CONST, Family.OUTPUT}
    floats = b"".join(d for spec, d in zip(program.specs, runs[0].read, strict=True) if spec.dtype is DType.F32)
    kinds = np.frombuffer(floats, np.uint32) & 0x7FFFFFFF
    assert (kinds > 0x7F800000).any() and (kinds == 0x7F800000).any() and ((kinds > 0) & (kinds < 0x800000)).any()
