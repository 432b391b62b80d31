"""The house as it is drawn: its rooms from the ground up, and what stands against the drawing.

A room is a folder of modules. A module imports from its own room and from rooms below it, never upward: `ROOMS` is the
whole order, and the one place where it changes. `tools/check_layout.py` prints the complaints in the gate.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "assay": ".",
    "assay_ledger": "ledger",
    "assay_solver": "solver",
    "assay_verifier": "verifier",
    "assay_whistleblower": "whistleblower",
}
"""Each package and the source root that it lies in (docs/adr/0029-source-roots.md)."""

ROOMS = (
    # the pure rules
    "assay.protocol",
    "assay.protocol.arithmetic",
    "assay.protocol.trees",
    "assay.protocol.program",
    "assay.protocol.run",
    "assay.protocol.game",
    "assay.protocol.economics",
    "assay.protocol.rounds",
    "assay.protocol.payments",
    # settings, amounts, the checkout
    "assay",
    # programs run, and are captured
    "assay.engine.runtime.native",
    "assay.engine.runtime.exact",
    "assay.engine.runtime.values",
    "assay.engine.runtime.stock",
    "assay.engine.runtime.products",
    "assay.engine.runtime.fused",
    "assay.engine.runtime.triton.kernels",
    "assay.engine.runtime.triton",
    "assay.engine.runtime",
    "assay.engine.runtime.parallel",
    "assay.engine",
    "assay.engine.compiler.hidden",
    "assay.engine.compiler.ir",
    "assay.engine.compiler.lowering",
    "assay.engine.compiler.written",
    "assay.engine.compiler",
    # what is trained
    "assay.training",
    "assay.training.optimizers",
    "assay.training.methods",
    "assay.training.recipes",
    # the chain and the store
    "assay_ledger",
    "assay_ledger.bindings",
    "assay_ledger.processes",
    "assay_ledger.chain",
    "assay_ledger.store",
    "assay_ledger.keys",
    "assay_ledger.beacon",
    "assay_ledger.index",
    "assay_ledger.rounds",
    "assay_ledger.retention",
    "assay_ledger.deployment",
    "assay_ledger.vouchers",
    "assay_ledger.agents",
    # the roles; a whistleblower audits with the verifier's rules
    "assay_solver",
    "assay_verifier",
    "assay_whistleblower",
    # what people touch
    "assay.web",
    "assay.datasets",
    "assay.programs",
    "assay.sponsor",
    "assay.bundle",
    "assay.inference",
    "assay.inference.gateway",
    "assay.inference.relay",
    "assay.observing",
    "assay.watchdog",
    "assay.conformance",
    "assay.conformance.fuzz",
    "assay.provenance",
    "assay.explorer",
    "assay.demo",
    "assay.node",
    "assay.bench.methods",
    "assay.bench",
    "assay.device",
    "assay.simulation",
    "assay.planning",
    "assay.status",
    "assay.service",
    "assay.cli",
)
"""Every room, from the ground up."""

APART = {"assay_verifier": "assay_solver", "assay_whistleblower": "assay_solver"}
"""A package and a lower one that it must not know all the same: roles do not rely on each other's code."""

ENTRY = "assay.__main__"
"""`python -m assay`: stands at the root by Python's rule, and above all rooms."""

LINES = 400
"""What a source file may have at most, in any language; one above it is split."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its name, its file, and the modules of ours that it imports."""

    name: str
    path: Path
    imports: frozenset[str]

    @property
    def room(self) -> str:
        """The folder that it lies in, as a dotted name."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


def name_of(path: Path, source_root: Path) -> str:
    """The one name of a module: its path below its source root."""
    parts = path.relative_to(source_root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(root: Path = ROOT) -> dict[str, Module]:
    """All modules of the packages by name."""
    files = {
        name_of(path, root / where): path
        for package, where in PACKAGES.items()
        for path in sorted((root / where / package).rglob("*.py"))
    }
    return {name: Module(name, path, frozenset(_imports(name, path, files))) for name, path in files.items()}


def _imports(name: str, path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    """What a module imports of ours, inside functions and for types alone too."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            wanted = [found if (found := f"{module}.{alias.name}") in files else module for alias in node.names]
        else:
            continue
        for found in wanted:
            while found and found not in files:
                found = found.rpartition(".")[0]
            if found and found != name:
                yield found


def second_names(root: Path = ROOT) -> list[str]:
    """Links inside a package, and folders of modules that are no package: each gives a module a second path or name."""
    wrong = []
    for package, where in PACKAGES.items():
        top = root / where / package
        for path in [top, *sorted(top.rglob("*"))]:
            if path.is_symlink():
                wrong.append(f"{path.relative_to(root)} is a link: a module has one path")
            elif path.is_dir() and list(path.glob("*.py")) and not (path / "__init__.py").is_file():
                wrong.append(f"{path.relative_to(root)} has modules and no __init__.py")
    return wrong


def upward_arrows(found: Mapping[str, Module]) -> list[str]:
    """Imports from a room that stands above the importer's, and rooms that are not drawn."""
    floor = {room: k for k, room in enumerate(ROOMS)}
    strange = sorted({m.room for m in found.values()} - set(floor))
    wrong = [f"{room} is no room of tools/house.py: say there on which floor it stands" for room in strange]
    wrong += [
        f"{room} of tools/house.py has no modules" for room in ROOMS if all(m.room != room for m in found.values())
    ]
    for module in found.values():
        for name in sorted(module.imports):
            ours, theirs = module.room, found[name].room
            if module.name != ENTRY and ours in floor and theirs in floor and floor[theirs] > floor[ours]:
                wrong.append(f"{module.name} imports {name}, which stands above it")
            if any(module.name.startswith(a) and name.startswith(b) for a, b in APART.items()):
                wrong.append(f"{module.name} imports {name}, which it must not know")
    return wrong


def cycles(found: Mapping[str, Module]) -> list[str]:
    """Modules that import each other, directly or in a ring."""
    left = {name: set(module.imports) for name, module in found.items()}
    while free := [name for name, wanted in left.items() if not wanted & left.keys()]:
        for name in free:
            del left[name]
    # What remains imports the ring or is in it; take away what nothing of the rest imports.
    while idle := [name for name in left if all(name not in wanted for wanted in left.values())]:
        for name in idle:
            del left[name]
    return [f"these modules import each other: {', '.join(sorted(left))}"] if left else []


def large_files(paths: Iterable[Path], root: Path = ROOT) -> list[str]:
    """Source files above the most lines that one may have."""
    sizes = {str(p.relative_to(root)): len(p.read_text(encoding="utf-8").splitlines()) for p in paths}
    return [f"{name} has {lines} lines, above {LINES}: split it" for name, lines in sizes.items() if lines > LINES]
