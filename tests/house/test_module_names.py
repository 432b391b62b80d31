"""One module, one path, one name."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HATCH = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
PACKAGES: list[str] = HATCH["targets"]["wheel"]["packages"]
"""The folder of each package below the root."""

NO_MODULES = {"ledger", "solver", "verifier", "whistleblower", "protocol", "engine", "training", "bench", "contracts"}
"""Folders at the root, now or once: with the root on the path, Python would import them as namespaces."""

# With the root on the path, as `python -c` and `python -m` put it; then the second names must not have been loaded.
IMPORT_ALL = """
import json, pkgutil, sys
from importlib import import_module
for package in sys.argv[1:]:
    for module in pkgutil.walk_packages(import_module(package).__path__, package + "."):
        import_module(module.name)
print(json.dumps({n: m.__file__ for n, m in sys.modules.items() if getattr(m, "__file__", None) and n != "__main__"}))
"""


def python_files() -> list[Path]:
    """Every Python file of the project."""
    folders = [*(ROOT / p for p in PACKAGES), ROOT / "tests", ROOT / "tools", ROOT / "examples"]
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The first words of all absolute imports of a file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found


def test_no_file_imports_a_folder_of_the_root_by_its_bare_name() -> None:
    files = python_files()
    assert len(files) > 300
    assert {path: found for path in files if (found := imported(path) & NO_MODULES)} == {}


def test_all_modules_loaded_from_the_root_have_one_name_that_is_their_path() -> None:
    packages = [Path(p).name for p in PACKAGES]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *packages], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    names: dict[str, list[str]] = {}
    for name, file in json.loads(done.stdout).items():
        names.setdefault(os.path.realpath(file), []).append(name)
    for where in PACKAGES:
        for path in (ROOT / where).rglob("*.py"):
            parts = path.relative_to((ROOT / where).parent).with_suffix("").parts
            assert names[str(path)] == [".".join(parts[:-1] if parts[-1] == "__init__" else parts)]


@pytest.mark.parametrize("where", PACKAGES)
def test_a_package_is_a_real_folder_without_links(where: str) -> None:
    folder = ROOT / where
    assert not any(path.is_symlink() for path in (folder, *folder.parents[: len(Path(where).parts) - 1]))
    assert not [path for path in folder.rglob("*") if path.is_symlink()]
    assert (folder / "__init__.py").read_text(encoding="utf-8").startswith('"""')
    assert (folder / "py.typed").is_file()


def test_what_a_command_needs_is_loaded_by_that_command_alone() -> None:
    # Completion asks for every noun and verb at each press of a key, and `--help` shows them.
    code = "import json, sys; from assay.cli.main import _add_commands as a; a(); print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "web3", "eth_account", "sqlalchemy", "fastapi", "jinja2", "assay_ledger.contract"}
    assert not heavy & set(json.loads(done.stdout))
