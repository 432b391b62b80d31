"""What is pinned is used, and what is used is pinned: nobody installs a package that the product never imports."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.house import ROOT

PRODUCT = ("assay", "ledger", "solver", "verifier", "whistleblower")

FOR_ANOTHER = {
    "coincurve": "eth-keys computes with it",
    "jinja2": "fastapi's templates are made of it",
    "py-ecc": "keys/bn254.py imports it by name, so that a key costs no second of start",
    "httptools": "uvicorn parses requests with it",
    "uvloop": "uvicorn waits for them with it",
    "httpx": "Starlette's client for tests speaks through it",
}
"""Pins that no import statement shows, and what they are for."""

OF_TORCH = "# torch's own runtime needs"


def pins(name: str) -> set[str]:
    """The packages that a requirements file names, but for what torch alone needs."""
    lines = (ROOT / name).read_text().partition(OF_TORCH)[0].splitlines()
    return {canonicalize_name(Requirement(line).name) for line in lines if line and not line.startswith("#")}


def imported(*folders: str) -> set[str]:
    """Packages of others that the modules below some folders import anywhere."""
    found = set()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.partition(".")[0])
    makers = packages_distributions()
    return {canonicalize_name(maker) for name in found - sys.stdlib_module_names for maker in makers.get(name, ())}


def test_whatever_the_product_needs_is_imported_or_said_for_what() -> None:
    assert pins("requirements.in") - imported(*PRODUCT) - set(FOR_ANOTHER) == set()
    assert all(name in pins("requirements.in") | pins("requirements-dev.in") for name in FOR_ANOTHER)


def test_whatever_the_product_imports_is_pinned_by_itself() -> None:
    asked_for_only_where_it_is = {"pyarrow", "pillow", "tokenizers", "psycopg", "pyrevm", "torch", "triton"}
    assert imported(*PRODUCT) - pins("requirements.in") - asked_for_only_where_it_is - {"assay"} == set()


def test_an_import_that_nobody_pinned_would_be_seen() -> None:
    assert "pytest" in imported("tests") and "pytest" not in pins("requirements.in")
