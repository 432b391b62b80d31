"""Run as a script by `test_ranks`: one rank that trains a small GPT with others, in each of several divisions.

python -m tests.harness.engine.ranks STORE RANK SIZE STEPS DIVISION...   (alone, batches, shards, terms, all, witness)
"""

from __future__ import annotations

import json
import sys
import time

import torch
import torch._dynamo  # before ranks meet: loaded later, it holds on to threads that abort a process at its end
import torch.distributed as dist
from torch import Tensor, nn

from assay.engine.compiler.cache import cached_program
from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.parallel.executor import ParallelExecutor
from assay.engine.runtime.parallel.group import Distributed
from assay.engine.runtime.parallel.layout import Division, long_dots, micro_batch_sums, norm_sums
from assay.engine.runtime.parallel.witness import with_witness
from assay.engine.runtime.values import state_io
from assay.protocol.program.program import Program
from assay.protocol.program.witness import witness_lists, witnessed_program
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.initialize import initialize
from assay.training.model import CharacterGPT, next_token_loss
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.state import TensorLists


def loss(module: nn.Module, window_BT: Tensor) -> Tensor:
    tokens = window_BT.long()
    return next_token_loss(module(tokens[:, :-1]), tokens[:, 1:])


def gpt_step(
    layers: int = 1, width: int = 16, context: int = 8, batch: int = 4, micro_batches: int = 4
) -> tuple[Program, TensorLists]:
    """The program of one step in micro-batches, clipped by the gradients' norm, and its first state."""
    corpus = corpus_from_text(pydoc_text()[:50_000])
    module = CharacterGPT(len(corpus.vocabulary), layers, width, 4, context)
    for p, start in zip(module.parameters(), initialize(module, 1), strict=True):
        p.data.copy_(start)
    adamw = torch.optim.AdamW(module.parameters(), lr=3e-3)
    recipe = Recipe(
        module, loss, adamw, (corpus.train,), batch, context + 1, micro_batches=micro_batches, clip_norm=1.0
    )
    step = RecipeStep(recipe)
    state = step.state(key=(3, 4))
    size = {"kind": "gpt in micro-batches", "size": [layers, width, context, batch, micro_batches]}
    return cached_program(size, lambda: capture(step, state).program), state


def subject(division: str) -> tuple[Program, TensorLists]:
    """What is trained in a division: the witnessed step in that of its name, else the plain one."""
    program, state = gpt_step()
    if division != "witness":
        return program, state
    program = witnessed_program(program)
    lists = state_io.from_lists_of_bytes(state_io.input_specs(program)[len(state) :], witness_lists((5, 6)))
    return program, (*state, *lists)


def layout_of(division: str, program: Program, size: int) -> Division:
    batches, terms, lists = micro_batch_sums(program), long_dots(program, 8), frozenset((0, 1))
    return {
        "alone": Division(),
        "batches": Division(batches),
        "shards": Division(batches | norm_sums(program, batches), lists),
        "terms": Division(terms),
        "all": Division(batches | terms, lists),
        "witness": with_witness(Division(batches), program, size),
    }[division]


def main() -> None:
    """Train in every division and report as JSON."""
    store, rank, size, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    reports = []
    for division in sys.argv[5:]:
        # Ranks differ in how they run their nodes: that leaves no trace either.
        variant = KernelVariant.STOCK if rank % 2 else None
        program, state = subject(division)
        ours = ParallelExecutor(program, layout_of(division, program, size), Distributed(), variant)
        mine = ours.shard(state)
        held = sum(t.numel() * t.element_size() for part in mine[:2] for t in part)
        dist.barrier()
        start = time.process_time()
        mine = ours.repeat(mine, steps)
        spent = time.process_time() - start
        nodes = sum(len(e.program.nodes) for e in ours.executors)
        whole = ours.unshard(mine)
        reports.append(
            {
                "division": division,
                "ranks": size,
                "root": state_io.state_root(whole).hex(),
                "exchanges": ours.traffic.calls / steps,
                "bytes": ours.traffic.bytes / steps,
                "state": held,
                "nodes": nodes,
                "ms": 1000 * spent / steps,
            }
        )
    dist.destroy_process_group()
    print(json.dumps(reports))


if __name__ == "__main__":
    main()


def alone(steps: int, division: str = "alone") -> str:
    """The root after some steps of the ordinary executor."""
    program, state = subject(division)
    return state_io.state_root(Executor(program).repeat(state, steps)).hex()
