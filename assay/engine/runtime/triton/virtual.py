"""Nodes of T x T that are never stored: who reads them computes them anew, tile by tile (docs/adr/0051).

Pure Python: which nodes of a program, and how each is read. A virtual node is a product with few terms, batched (the
scores of attention), or a map or random words over the same elements. All its readers are virtual maps that read it
element by element, reductions over its rows or its columns, or products that have it as the matrix of one side.
Shapes: G batch, M rows, N columns; the linear number of an element is (g M + m) N + n in every node of a space.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from math import prod

from assay.engine.runtime.products.dot import groups
from assay.engine.runtime.triton.routes import Route, is_counted, route
from assay.engine.runtime.triton.rows import is_linear, walks
from assay.engine.runtime.values.views import is_inside
from assay.protocol.program.nodes import Dot, Map, Max, Node, Operand, Random, RowExp, Sum, operands, reads
from assay.protocol.program.program import Program

MOST_TERMS = 128
"""Of a product that is computed anew: one block of terms, whose digits of both operands registers hold."""

MOST_COLUMNS = 128
"""Of the other side of a product that reads a virtual node: one block, so that no tile is computed twice for it."""

MOST_CHAIN = 32
"""Virtual nodes that a tile takes; a GPT takes nine. Attack: a stranger's chain of maps, read by as many reductions, is
written out for each of them.
"""

MOST_WRITTEN = 1 << 22
"""Bytes of scalar code over all readers, each of which has its chain's written out."""

Admits = Callable[[int, int], Route | None]
"""The route by which products of these precisions are multiplied here, None where there is none."""


@dataclass(frozen=True, slots=True)
class TileSpace:
    """The index space of a virtual node."""

    batch: int
    rows: int
    columns: int

    @property
    def numel(self) -> int:
        """Elements."""
        return self.batch * self.rows * self.columns


@dataclass(frozen=True, slots=True)
class TileReader:
    """How a stored node reads a virtual one. turned: over its columns, not its rows. is_b: as side B of a product."""

    source: int
    turned: bool
    is_b: bool = False


@dataclass(frozen=True, slots=True)
class VirtualNodes:
    """What is virtual in a program, and the nodes that compute it anew, by number."""

    spaces: dict[int, TileSpace]
    readers: dict[int, TileReader]

    def chain(self, program: Program, source: int) -> list[int]:
        """The virtual nodes that a tile of `source` takes, in order, itself the last one."""
        return sorted(_chain(program, source, self.spaces))

    def reads(self, program: Program, k: int) -> list[int]:
        """The stored nodes that node k reads, by itself or for its tiles; in order."""
        own = reads(program.nodes[k])
        chain = self.chain(program, self.readers[k].source) if k in self.readers else []
        return sorted({j for c in (own, *(reads(program.nodes[v]) for v in chain)) for j in c if j not in self.spaces})


NONE = VirtualNodes({}, {})
"""Of a program whose every node is stored."""


def virtual_nodes(program: Program, admits: Admits = route) -> VirtualNodes:
    """The nodes of a program that need not be stored."""
    readers = _readers(program)
    spaces = _candidates(program, readers, admits)
    left = [k for k in spaces if not _is_recomputed(program, k, spaces, readers[k], admits)]
    wrong = set(left)
    while left:  # a map that is stored reads no tiles
        new = {j for j in reads(program.nodes[left.pop()]) if j in spaces} - wrong
        wrong |= new
        left += new
    for k in wrong:
        del spaces[k]
    found = {}
    for k in sorted({r for v in spaces for r in readers[v]} - spaces.keys()):
        reader = _reader(program, program.nodes[k], spaces, admits)
        assert reader is not None
        found[k] = reader
    made = VirtualNodes(dict(sorted(spaces.items())), found)
    return made if _written(program, made) <= MOST_WRITTEN else NONE


def _written(program: Program, made: VirtualNodes) -> int:
    """Bytes of scalar code that the kernels of all readers are made of; once there are too many, that."""
    total = 0
    for reader in made.readers.values():
        for v in made.chain(program, reader.source):
            node = program.nodes[v]
            total += len(node.code) if isinstance(node, Map) else 0
        if total > MOST_WRITTEN:
            break
    return total


def _chain(program: Program, source: int, spaces: Container[int]) -> set[int]:
    """The virtual nodes that a tile takes; no more are looked for than are too many."""
    found, left = {source}, [source]
    while left and len(found) <= MOST_CHAIN:
        new = {j for j in reads(program.nodes[left.pop()]) if j in spaces} - found
        found |= new
        left += sorted(new)
    return found


def _readers(program: Program) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in program.nodes]
    for k, node in enumerate(program.nodes):
        for j in sorted(set(reads(node))):
            found[j].append(k)
    return found


def _candidates(program: Program, readers: Sequence[Sequence[int]], admits: Admits) -> dict[int, TileSpace]:
    """Scores and what maps make of them, then what these maps alone read: dropout's masks and its random words."""
    found: dict[int, TileSpace] = {}
    for k, node in enumerate(program.nodes):
        space = _scores(node, admits)
        if space is None and isinstance(node, Map):
            of = {found[o.node] for o in node.operands if o.node in found and is_linear(o.view, node.spec.dims)}
            space = next(iter(of)) if len(of) == 1 and next(iter(of)).numel == node.spec.numel else None
        if space is not None:
            found[k] = space
    for k in reversed(range(len(program.nodes))):
        node, spaces = program.nodes[k], {found.get(r) for r in readers[k]}
        if k not in found and isinstance(node, Map | Random) and len(spaces) == 1:
            (only,) = spaces
            if only is not None and only.numel == node.spec.numel:
                found[k] = only
    return found


def _scores(node: Node, admits: Admits) -> TileSpace | None:
    """The space of a product of few terms that is larger than its operands; None for others."""
    if not isinstance(node, Dot) or 0 in node.spec.dims or 0 in node.red:
        return None
    parts = groups(node)
    if parts is None or not parts[0] or tuple(d for p in parts for d in p) != tuple(range(len(node.spec.dims))):
        return None
    batch, rows, columns = (prod(node.spec.dims[d] for d in part) for part in parts)
    found, terms = admits(node.precision_a, node.precision_b), prod(node.red)
    if found is None or terms > min(MOST_TERMS, found.terms, rows, columns):
        return None
    # Attack: columns that no memory holds, since they repeat, and that no kernel of tiles counts.
    if not is_counted(batch, rows, columns, terms):
        return None
    return TileSpace(batch, rows, columns)


def _is_recomputed(
    program: Program, k: int, spaces: dict[int, TileSpace], readers: Sequence[int], admits: Admits
) -> bool:
    """Whether every reader of a candidate can compute its tiles anew, if all candidates are virtual."""
    if len(_chain(program, k, spaces)) > MOST_CHAIN:
        return False
    for r in readers:
        node = program.nodes[r]
        if r in spaces:
            linear = isinstance(node, Map) and all(is_linear(o.view, node.spec.dims) for o in _of(node, k))
            if not linear or spaces[r] != spaces[k]:
                return False
        elif (found := _reader(program, node, spaces, admits)) is None or found.source != k:
            return False
    return bool(readers)


def _of(node: Node, k: int) -> list[Operand]:
    return [o for o, _ in operands(node) if o.node == k]


def _reader(program: Program, node: Node, spaces: dict[int, TileSpace], admits: Admits) -> TileReader | None:
    """How a stored node reads the one virtual node that it reads; None where no kernel does that."""
    if sum(o.node in spaces for o, _ in operands(node)) != 1:
        return None
    if isinstance(node, RowExp | Max | Sum) and node.x.node in spaces:
        return _reduction(node, spaces[node.x.node])
    if isinstance(node, Dot) and (node.a.node in spaces or node.b.node in spaces):
        return _product(node, spaces, admits)
    return None


def _reduction(node: RowExp | Max | Sum, space: TileSpace) -> TileReader | None:
    view, dims, red = node.x.view, node.spec.dims, node.red
    sizes, out = (*dims, *red), range(len(dims))
    if not is_inside(view, sizes) or view.offset:
        return None
    last = tuple(range(len(dims), len(sizes)))
    is_rows = prod(dims) == space.batch * space.rows and prod(red) == space.columns
    if is_rows and walks(view, tuple(out), sizes, space.columns) and walks(view, last, sizes, 1):
        return TileReader(node.x.node, turned=False)
    if prod(dims) == space.batch * space.columns and prod(red) == space.rows:
        for cut in out:
            batch, own = tuple(out[:cut]), tuple(out[cut:])
            if prod(dims[cut:]) != space.columns or not walks(view, own, sizes, 1):
                continue
            if walks(view, batch, sizes, space.rows * space.columns) and walks(view, last, sizes, space.columns):
                return TileReader(node.x.node, turned=True)
    return None


def _product(node: Dot, spaces: dict[int, TileSpace], admits: Admits) -> TileReader | None:
    parts = groups(node)
    if parts is None or 0 in node.spec.dims or 0 in node.red:
        return None
    is_b = node.b.node in spaces
    x, precisions = (node.b if is_b else node.a), (node.precision_a, node.precision_b)
    found = admits(*(precisions if is_b else reversed(precisions)))  # the virtual side is the right factor
    batch, own, other = (parts[0], parts[2], parts[1]) if is_b else parts
    space, dims, terms = spaces[x.node], node.spec.dims, prod(node.red)
    sizes = (*dims, *node.red)
    columns, rows = prod(dims[d] for d in other), prod(dims[d] for d in own)
    if found is None or terms > found.terms or columns > MOST_COLUMNS or prod(dims[d] for d in batch) != space.batch:
        return None
    if not is_inside(x.view, sizes) or x.view.offset:
        return None
    last = tuple(range(len(dims), len(sizes)))
    if not walks(x.view, batch, sizes, space.rows * space.columns):
        return None
    for turned, shape, strides in (
        (False, (space.rows, space.columns), (space.columns, 1)),
        (True, (space.columns, space.rows), (1, space.columns)),
    ):
        if (rows, terms) == shape and all(
            walks(x.view, part, sizes, stride) for part, stride in zip((own, last), strides, strict=True)
        ):
            return TileReader(x.node, turned, is_b)
    return None
