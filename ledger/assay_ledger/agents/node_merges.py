"""Merges of nodes above 64 seats, as one actor computes them: kept by what goes into them, and looked at twice.

A node's X follows from chain state and can change until its stage is over, or by a reorganization: a result counts for
the very X that it was computed from.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from assay.protocol.program.trace import Trace
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ids import Node
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Digest, Round
from assay_ledger.index.computing import Computation, Compute, RecheckMismatch
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.nodes import input_of, round_of
from assay_ledger.rounds.view import RunView

KEPT = 3
"""Generations whose results are kept: the one under way and those whose openings may still be disputed first."""


@dataclass(frozen=True, slots=True)
class NodeResult:
    """List roots of a merge, `second` zero for a sum; `tail` names where its lists lie, if they were published."""

    first: Digest
    second: Digest
    root: Digest
    tail: bytes = b""


class NodeMerges:
    """What one actor knows of nodes."""

    def __init__(self, archive: Archive, compute: Compute) -> None:
        self._archive, self._compute = archive, compute
        self._results: dict[tuple[Node, Digest], NodeResult] = {}
        self._confirmed: set[tuple[Node, Digest]] = set()

    def result(self, view: RunView, node: Node) -> NodeResult | None:
        """What the merge of a node comes to, if it was computed from what is on chain now."""
        is_there = view.round is not None and round_of(node) <= view.round  # a reorganization takes rounds back
        if not is_there or all(node != known for known, _ in self._results):
            return None
        return self._results.get((node, input_of(view, node)))

    def job(self, view: RunView, node: Node) -> Computation:
        """The merge of a node. Raises UnavailableError, StateMismatch."""
        with self._archive.objects.own_copies_first():
            base: ListBytes = ()
            if not ids.is_group(node):
                base = self._archive.base(view, view.round_of(round_of(node)).parent, self._compute, publish=False)
            return self._archive.node_job(view, node, base, self._compute)

    def merge(self, view: RunView, node: Node, run: Callable[[Computation], ListBytes], *, publish: bool) -> None:
        """Computes a node by `run`, keeps its lists here, and publishes them where others need them.

        Raises UnavailableError, StateMismatch.
        """
        lists = run(self.job(view, node))
        for tensors in lists:
            self._archive.keep_list(node, tensors)
        first, second = self._archive.node_roots(node, lists)
        tail = self._archive.publish_node(node, lists)[2] if publish else b""
        self._keep(view, node, NodeResult(first, second, ids.root_of(node, first, second), tail))

    def confirm(self, view: RunView, node: Node) -> None:
        """Computes a merge again by other kernels before anything is said against others. Raises RecheckMismatch.

        Where the two differ a third calculation decides, as in `Solver.confirm`.
        """
        key, known = (node, input_of(view, node)), self.result(view, node)
        if key in self._confirmed or known is None:
            return
        job, roots = self.job(view, node), (known.first, known.second)
        second = self._archive.node_roots(node, self._compute.recheck(job.program, job.lists, job.steps))
        if second != roots:
            third = self._archive.node_roots(node, self._compute.run(job.program, job.lists, job.steps))
            if third == second:
                self._keep(view, node, NodeResult(*second, ids.root_of(node, *second)))
                self._confirmed.add(key)
            raise RecheckMismatch(f"Two calculations of node {node} differ.", first=roots[0], second=second[0])
        self._confirmed.add(key)

    def trace(self, view: RunView, node: Node) -> Trace:
        """The run behind the merge of a node."""
        job = self.job(view, node)
        return self._compute.trace(job.program, job.lists, job.steps)

    def roots(self, view: RunView) -> dict[Node, Digest]:
        """The root of every node that was computed from what is on chain now."""
        found = {node: self.result(view, node) for node, _ in self._results}
        return {node: result.root for node, result in found.items() if result is not None}

    def _keep(self, view: RunView, node: Node, result: NodeResult) -> None:
        self._results[node, input_of(view, node)] = result
        oldest = ids.generation_of(node) - KEPT
        self._results = {key: made for key, made in self._results.items() if ids.generation_of(key[0]) > oldest}


def seal_salt(secret: bytes, run: Digest, at: Round | Node, root: Digest) -> Digest:
    """What hides a sealed root from whoever could guess it: the same in every life of an actor, and nobody else's.

    run: its identity among those of all chains.
    """
    return Digest(hmac.new(secret, b"assay-seal" + run + at.to_bytes(8, "big") + root, sha256).digest())
