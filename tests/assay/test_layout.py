"""The house stands as drawn: one name per module, arrows one way, a wheel without general top-level names."""

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("protocol", "engine", "training", "ledger", "solver", "verifier", "whistleblower", "bench")
ACTORS = {"solver", "verifier", "whistleblower"}
BELOW: dict[str, set[str]] = {
    "protocol": set(),
    "engine": {"protocol"},
    "training": {"engine", "protocol"},
    "ledger": {"engine", "protocol"},
    **{actor: {"training", "ledger", "engine", "protocol"} for actor in ACTORS},
}
# What the pure rules may not touch: the outside world, the clock, chance, and the heavy libraries.
IMPURE = {
    *("torch", "web3", "numpy", "numba", "scipy", "requests", "httpx", "obstore", "safetensors", "sqlalchemy"),
    *("io", "os", "pathlib", "shutil", "socket", "subprocess", "tempfile", "threading", "asyncio", "urllib"),
    *("time", "datetime", "random", "secrets", "uuid", "logging", "multiprocessing"),
}


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports(path: Path, folder: str) -> set[str]:
    """Absolute names of all that `path` imports, relative imports resolved."""
    found = set()
    package = ["assay", folder, *path.relative_to(ROOT / folder).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module or ""]))
            found |= {f"{module}.{alias.name}" for alias in node.names} if module in ("assay", base) else {module}
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_arrows_between_folders_run_one_way(folder: str) -> None:
    for path in sources(folder):
        for name in imports(path, folder):
            parts = name.split(".")
            assert parts[0] not in FOLDERS, f"{path.name}: import assay.{parts[0]}, not {parts[0]}"
            if parts[0] == "assay" and len(parts) > 1 and parts[1] != folder:
                assert folder == "bench" or parts[1] in BELOW[folder], f"{folder}/{path.name} may not import {name}"


def test_the_pure_rules_import_no_outside_world() -> None:
    for path in sources("protocol"):
        for name in imports(path, "protocol"):
            assert name.split(".")[0] not in IMPURE, f"protocol/{path.name} imports {name}"


def test_every_folder_is_a_link_that_works_from_any_path() -> None:
    for folder in FOLDERS:
        link = ROOT / "assay" / folder
        assert link.is_symlink()
        assert link.readlink() == Path("..") / folder
        assert (ROOT / folder / "__init__.py").read_text().startswith('"""')


def test_no_module_is_reachable_under_two_names(tmp_path: Path) -> None:
    code = f"import importlib.util, sys; sys.exit(any(importlib.util.find_spec(n) for n in {FOLDERS!r}))"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env).returncode == 0


def test_a_wheel_holds_real_files_under_assay_only(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "requirements.in", "requirements-torch.in"):
        shutil.copy(ROOT / name, tree)
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("assay", *FOLDERS):
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=ignore)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", tmp_path, tree], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("assay-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert {name.split("/")[0] for name in names} == {
            "assay",
            next(n for n in names if "dist-info" in n).split("/")[0],
        }
        assert archive.read("assay/protocol/errors.py") == (ROOT / "protocol" / "errors.py").read_bytes()
        for folder in FOLDERS:
            assert f"assay/{folder}/__init__.py" in names
