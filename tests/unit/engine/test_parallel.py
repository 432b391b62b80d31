"""Dividing a program leaves no trace in its bits: sums split anywhere, states in shards, pieces replayed apart."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assay.conformance.fuzz.programs import draw
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.parallel.executor import ParallelExecutor
from assay.engine.runtime.parallel.layout import Division, long_dots, micro_batch_sums
from assay.engine.runtime.parallel.pieces import PieceExecutor
from assay.engine.runtime.parallel.rows import TermRange, needed, share
from assay.engine.runtime.parallel.stages import RankPlan, levels
from assay.engine.runtime.values import state_io
from assay.engine.runtime.values.dtypes import to_bytes
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.errors import UserError
from assay.protocol.program.nodes import Dot, RowExp, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.wellformed import violations
from tests.harness.engine import ranks
from tests.harness.engine.helpers import bits_equal, captured, tensors_of
from tests.harness.programs import Example, all_examples

ROOT = Path(__file__).resolve().parents[3]


def same(a: Lists, b: Lists) -> bool:
    """Whether two results have the same bytes."""
    return [[to_bytes(t) for t in part] for part in a] == [[to_bytes(t) for t in part] for part in b]


def reductions(program: Program) -> list[int]:
    """The nodes that can be split."""
    nodes = enumerate(program.nodes)
    return [k for k, n in nodes if isinstance(n, RowExp | Sum | Dot) and n.red and n.terms and n.spec.numel]


def check_all_divisions(program: Program, inputs: Lists, rng: random.Random) -> None:
    """Pieces with any sums split give the bits of one executor."""
    expected = Executor(program, variant=KernelVariant.STOCK).run(inputs)
    for pieces in (2, 3):
        for share_of in (0.5, 1.0):
            splits = frozenset(k for k in reductions(program) if rng.random() < share_of)
            assert same(PieceExecutor(program, pieces, splits=splits).run(inputs), expected), (pieces, splits)


@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_every_family_gives_the_same_bits_in_pieces(example: Example):
    check_all_divisions(example.program, tensors_of(example.program, example.state), random.Random(1))


@given(st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_random_programs_give_the_same_bits_in_pieces(seed: int):
    case = draw(seed)
    check_all_divisions(case.program, tensors_of(case.program, case.state), random.Random(seed))


@pytest.fixture(scope="module")
def step() -> tuple[Program, Lists]:
    return ranks.gpt_step()


def test_pieces_of_whole_micro_batches_end_in_one_root(step: tuple[Program, Lists], tmp_path: Path):
    program, state = step
    expected = state_io.state_root(Executor(program).repeat(state, 3))
    for pieces in (1, 2, 3, 4):
        found = PieceExecutor(program, pieces, folder=tmp_path).repeat(state, 3)
        assert state_io.state_root(found) == expected
        assert not list(tmp_path.iterdir()), "files are left behind"
    fused = PieceExecutor(
        program,
        2,
        variant=KernelVariant.FUSED if Executor(program).variant is KernelVariant.FUSED else KernelVariant.STOCK,
    )
    assert state_io.state_root(fused.repeat(state, 3)) == expected


def test_a_piece_computes_its_own_micro_batches_only(step: tuple[Program, Lists]):
    program, _ = step
    splits = micro_batch_sums(program)
    assert len(splits) == 2 * len(program.input_nodes[0]), "one sum with its exponent per parameter"
    layout = Division(splits)
    alone = len(RankPlan(program, layout, 0, 1).need)
    needs = [RankPlan(program, layout, rank, 4).need for rank in range(4)]
    own = [{k for k in need if sum(k in other for other in needs) == 1} for need in needs]
    assert len({len(nodes) for nodes in own}) == 1, "every micro-batch is as much work"
    assert all(3 * len(nodes) < len(need) + 2 * len(nodes) < alone for nodes, need in zip(own, needs, strict=True))
    assert sum(map(len, own)) > 0.6 * alone


def test_stages_of_every_rank_are_well_formed_and_exchange_the_same(step: tuple[Program, Lists]):
    program, _ = step
    lists = frozenset((0, 1))
    for layout in (
        Division(micro_batch_sums(program), lists),
        Division(long_dots(program, 8)),
        Division(sharded=lists),
    ):
        exchanged = set()
        for rank in range(3):
            stages = RankPlan(program, layout, rank, 3).stages
            assert not [v for s in stages if s.program for v in violations(s.program)]
            exchanged.add(tuple((s.exponents, tuple(k for k, _ in s.sums)) for s in stages))
        assert len(exchanged) == 1
        assert len(next(iter(exchanged))) == max(levels(program, layout.splits)) + 1


def test_exponents_are_exchanged_before_anything_is_quantized(step: tuple[Program, Lists]):
    program, _ = step
    for splits in (micro_batch_sums(program), long_dots(program, 8)):
        at = levels(program, splits)
        for k in sorted(splits):
            node = program.nodes[k]
            used = [] if isinstance(node, RowExp) else [node.exponent] if isinstance(node, Sum) else [node.exponent_a]
            assert all(at[o.node] < at[k] for o in used if o.node in splits)


def test_a_stack_needs_the_rows_of_its_own_terms(step: tuple[Program, Lists]):
    program, _ = step
    k = next(k for k in sorted(micro_batch_sums(program)) if isinstance(program.nodes[k], Sum))
    node = program.nodes[k]
    assert isinstance(node, Sum)
    seen: list[tuple[int, int]] = []
    for t in range(4):
        need = needed(program, {}, dict.fromkeys((k, node.exponent.node), TermRange(0, t, t + 1)))
        seen.append(need[node.x.node])
    assert [a for a, _ in seen] == [0, *(b for _, b in seen[:-1])]


def test_shares_are_adjacent_disjoint_and_even():
    for count in (0, 1, 4, 7, 100):
        for size in (1, 2, 3, 8):
            parts = [share(count, rank, size) for rank in range(size)]
            assert parts[0][0] == 0 and parts[-1][1] == count
            assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
            assert max(b - a for a, b in parts) - min(b - a for a, b in parts) <= 1


def test_a_whole_state_where_a_shard_belongs_is_refused(step: tuple[Program, Lists]):
    program, state = step
    executor = ParallelExecutor(program, Division(sharded=frozenset((0, 1))), Lonely())
    with pytest.raises(UserError) as caught:
        executor.run(state)
    assert caught.value.code == "InputLayout"
    with pytest.raises(UserError, match="takes lists"):
        executor.run([])


class Lonely:
    """The first of two ranks; the other is never asked."""

    rank, size = 0, 2

    def maximum(self, t: Tensor) -> None:
        raise AssertionError

    def total(self, t: Tensor) -> None:
        raise AssertionError

    def gather(self, t: Tensor, counts: object) -> Tensor:
        raise AssertionError


def test_sums_that_are_rounded_apart_do_not_add_up():
    """The exchange of integers is not for show: f32 parts of a sum lose what their total keeps."""
    x = torch.tensor([[1.0, 2.0**-24, 2.0**-24, 0.0]])
    program = captured(lambda a: (a.sum(1),), x).program
    splits = frozenset(k for k, n in enumerate(program.nodes) if isinstance(n, Sum))
    whole = Executor(program).run([[x]])[0][0]
    assert bits_equal(PieceExecutor(program, 2, splits=splits).run([[x]])[0][0], whole)
    apart = Executor(captured(lambda a: (a.sum(1),), x[:, :2]).program)
    parts = [apart.run([[x[:, i : i + 2].contiguous()]])[0][0] for i in (0, 2)]
    assert not bits_equal(parts[0] + parts[1], whole)


def measured(tmp_path: Path, pieces: int, steps: int, *size: int) -> dict[str, object]:
    """What a fresh process reports that trains in so many pieces."""
    folder = tmp_path / f"pieces-{pieces}"
    folder.mkdir()
    environment = {**os.environ, "ASSAY_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    # Freed memory goes back at once, so that the figure is what is in use.
    environment["MALLOC_MMAP_THRESHOLD_"] = environment["MALLOC_TRIM_THRESHOLD_"] = "65536"
    command = [
        sys.executable,
        "-m",
        "tests.harness.engine.pieces_memory",
        str(folder),
        *map(str, (pieces, steps, *size)),
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=900)
    report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(report))
    return report


@pytest.mark.long
@pytest.mark.timeout(600)
def test_peak_memory_falls_with_the_number_of_pieces(tmp_path: Path):
    reports = [measured(tmp_path, pieces, 1, 1, 256, 8) for pieces in (1, 2, 4)]
    assert len({r["root"] for r in reports}) == 1
    peaks = [int(str(r["peak"])) for r in reports]
    assert peaks[0] > 1.2 * peaks[1] > 1.2 * 1.2 * peaks[2]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_hundred_steps_in_pieces_end_in_one_root(tmp_path: Path):
    reports = [measured(tmp_path, pieces, 100, 1, 16, 4) for pieces in (0, 1, 2, 4)]
    assert len({r["root"] for r in reports}) == 1
