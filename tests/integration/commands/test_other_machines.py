"""Where anvil, forge, obstore and pyrevm have no builds, what computes works, and a sentence says the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli import checks, platforms
from assay.cli.checks import CheckState
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.store.blobs import open_store
from assay_ledger.store.errors import StoreAddressInvalid

ROOT = Path(__file__).resolve().parents[3]

WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("obstore", "pyrevm"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import pkgutil
from importlib import import_module
for package in ("assay", "assay_ledger", "assay_solver", "assay_verifier", "assay_whistleblower"):
    for module in pkgutil.walk_packages(import_module(package).__path__, package + "."):
        import_module(module.name)
assert not {"obstore", "pyrevm"} & set(sys.modules)
"""


MACOS = """
import sys
import builtins, os, platform
import sysconfig, psutil, torch  # which bring what this system's build of them has
sysconfig.get_config_vars()
sys.platform, platform.system, platform.machine = "darwin", lambda: "Darwin", lambda: "arm64"
for name in ("sched_getaffinity", "sched_setaffinity", "posix_fadvise", "pidfd_open", "memfd_create", "eventfd"):
    delattr(os, name)
opened = builtins.open
def without_proc(file, *args, **kwargs):
    if str(file).startswith(("/proc", "/sys")):
        raise FileNotFoundError(file)
    return opened(file, *args, **kwargs)
builtins.open = without_proc
"""


def without_builds(code: str, before: str = "") -> str:
    """What a fresh process prints that has none of these packages; `before` anything is imported it runs some code."""
    done = subprocess.run(
        [sys.executable, "-c", before + WITHOUT + code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_is_imported_and_a_folder_is_a_store_without_them(tmp_path: Path):
    code = f"""
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.store.blobs import open_store
from assay_ledger.store.errors import StoreAddressInvalid
store = open_store({str(tmp_path)!r})
store.write_slot("name", b"bytes")
print(store.read_slot("name", 64))
try:
    open_store("s3://bucket/prefix")
except StoreAddressInvalid as error:
    print(error.message, error.remedy)
"""
    said = without_builds(code).splitlines()
    assert said[0] == "b'bytes'"
    assert "obstore, which reads buckets, is not installed" in said[1] and "assay doctor" in said[1]


def test_every_module_is_imported_where_the_system_says_that_it_is_macos():
    """What Linux alone has is missing; libraries were loaded as they are here. Nothing was run on a real one."""
    said = without_builds("from assay.cli import platforms\nprint(platforms.summary())", MACOS)
    assert said.startswith("Darwin arm64: nothing was tested on such a machine; no builds of anvil")


@pytest.fixture
def on_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms.platform, "system", lambda: "Linux")
    monkeypatch.setattr(platforms.platform, "machine", lambda: "aarch64")


def test_the_doctor_says_what_arm_has_no_builds_of(on_arm: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("assay_ledger.chain.node.ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("assay_ledger.chain.artifacts.artifacts_dir", lambda: tmp_path)
    load_artifact.cache_clear()  # other tests of this process have read contracts
    found = {finding.name: finding for finding in checks.examine()}
    for name, tool in (("platform", "anvil, forge, obstore, pyrevm"), ("anvil", "anvil"), ("contracts", "forge")):
        assert found[name].state is CheckState.SKIPPED, found[name]
        assert tool in found[name].found and "Linux aarch64" in found[name].found
    assert "kernels were tested under emulation" in found["platform"].found
    assert found["packages"].state is CheckState.OK
    assert "obstore has no build for Linux aarch64: buckets are no stores" in found["packages"].found


def test_on_the_tested_machine_what_is_missing_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("assay_ledger.chain.node.ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {finding.name: finding for finding in checks.examine()}
    assert (found["platform"].found, found["anvil"].state) == ("Linux x86_64", CheckState.BROKEN)


def test_an_address_of_no_kind_is_refused_as_before():
    with pytest.raises(StoreAddressInvalid):
        open_store("ftp://somewhere/else")
