"""The five packages come whole, installed as a wheel or editable, from the clone or the sdist."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import pytest
from eth_utils.crypto import keccak
from hatchling.builders.sdist import SdistBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assay.engine.compiler.hidden.walk import OWN
from assay_ledger.chain.contract_names import READ
from assay_ledger.chain.node import find_anvil

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = ROOT / ".build" / "forge" / "out"
"""What is compiled here; a clone is not."""

COMPILED = {f"assay_ledger/compiled/{name}.sol/{name}.json" for name in READ}
"""Where a wheel holds it."""

ROOTS: list[str] = PROJECT["tool"]["hatch"]["build"]["dev-mode-dirs"]
PACKAGES = {Path(path).name: path for path in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}
"""From a package's name to its folder below the root."""

ABSENT = () if find_spec("triton") else ("assay.engine.runtime.triton.kernels.",)
"""Modules that cannot be imported here: kernels in Triton's language, without Triton, which is no dependency."""

IMPORT_ALL = f"""
import json, pkgutil, sys
from importlib import import_module
names = []
for package in {sorted(PACKAGES)}:
    names += [package, *(m.name for m in pkgutil.walk_packages(import_module(package).__path__, package + "."))]
names = [name for name in names if not name.startswith({ABSENT})]
for name in names:
    import_module(name)
print(json.dumps([{{name: sys.modules[name].__file__ for name in names}}, sorted(sys.modules)]))
"""

LOAD_ALL = """
import json, sys
from assay_ledger.chain.artifacts import load_artifact
found = [load_artifact(name) for name in sys.argv[1:]]
print(json.dumps([[a.name, a.abi, a.bytecode.hex(), a.deployed.hex(), a.metadata] for a in found]))
"""


def run(*words: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command without this process's paths; its standard output, and its whole output where it fails."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "ASSAY_ARTIFACTS")}
    environment = inherited | variables
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{words} ends with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the working tree as it would be committed, at a path with a space."""
    folder = tmp_path_factory.mktemp("packaging")
    git = ("git", "-c", "user.name=test", "-c", "user.email=test", "--git-dir", folder / "tree.git")
    run(*git, "init", "--quiet", cwd=folder)
    # tools/mutants.py judges in a tree that keeps its temporary files in tmp.
    names = run(*git, "--work-tree", ROOT, "ls-files", "-z", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    kept = [name for name in names if name and not name.startswith("tmp/") and (ROOT / name).exists()]
    (folder / "names").write_text("\0".join(kept))
    listed = (f"--pathspec-from-file={folder / 'names'}", "--pathspec-file-nul")
    run(*git, "--work-tree", ROOT, "add", "--force", *listed, cwd=ROOT)
    run(*git, "--work-tree", ROOT, "commit", "--quiet", "--message", "tree", cwd=ROOT)
    run("git", "clone", "--quiet", folder / "tree.git", folder / "a clone", cwd=folder)
    return folder / "a clone"


@dataclass(frozen=True, slots=True)
class Built:
    """What was built from the clone."""

    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=clone, ASSAY_ARTIFACTS=str(CONTRACTS))
    ((sdist,), (wheel,)) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Built(sdist, wheel)


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that holds our packages and sees the dependencies of the one that runs the tests."""

    folder: Path
    variables: dict[str, str]

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        return self.folder / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"

    def modules(self) -> dict[str, Path]:
        """Import every module, isolated from this folder and from PYTHONPATH; where each comes from."""
        files, loaded = json.loads(run(self.python, "-I", "-c", IMPORT_ALL, cwd=self.folder))
        assert {name.partition(".")[0] for name in loaded} & {Path(root).name for root in ROOTS} == set()
        return {name: Path(file) for name, file in files.items()}

    def assay(self, *words: str) -> str:
        """What a command prints, with anvil named. It exits with 0."""
        home = {"HOME": str(self.folder), "ASSAY_CACHE": str(self.folder / "cache"), "ASSAY_ANVIL": str(find_anvil())}
        return run(self.folder / "bin" / "assay", *words, cwd=self.folder, **home, **self.variables)

    def doctor(self) -> dict[str, str]:
        """What `assay doctor` finds: from check to state."""
        return {finding["name"]: finding["state"] for finding in json.loads(self.assay("doctor", "--json"))}


def install(folder: Path, *words: str | Path, **variables: str) -> Installed:
    """A new environment, and what pip installs into it without any index; its commands run with these variables."""
    venv.create(folder, with_pip=False, symlinks=True)
    made = Installed(folder, variables)
    (made.site / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    # The running environment's own `assay` is visible too: it is neither satisfying nor touched.
    pip = (sys.executable, "-m", "pip", "--python", made.python, "--disable-pip-version-check", "--quiet", "install")
    run(*pip, "--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed", *words, cwd=folder)
    return made


def sources(root: Path) -> dict[str, Path]:
    """The name and the file of every module below a root, by the folders alone."""
    found = {}
    for package, where in PACKAGES.items():
        for path in (root / where).rglob("*.py"):
            parts = path.relative_to((root / where).parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        assert package in found
    return {name: path for name, path in found.items() if not name.startswith(ABSENT)}


def test_every_tool_knows_the_same_source_roots() -> None:
    tool = PROJECT["tool"]
    assert tool["pytest"]["ini_options"]["pythonpath"] == ROOTS
    assert tool["ruff"]["src"] == ROOTS
    assert tool["pyright"]["extraPaths"] == ROOTS
    assert [os.path.relpath(path, "$MYPY_CONFIG_FILE_DIR") for path in tool["mypy"]["mypy_path"]] == ROOTS
    assert sorted(os.path.normpath(Path(where).parent) for where in PACKAGES.values()) == sorted(ROOTS)
    for names in (
        tool["mypy"]["packages"],
        tool["coverage"]["run"]["source_pkgs"],
        tool["ruff"]["lint"]["isort"]["known-first-party"],
    ):
        assert names == list(PACKAGES)
    assert PACKAGES.keys() == OWN


def test_the_sdist_holds_what_git_tracks_and_the_contracts(clone: Path, built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    compiled = {f"ledger/{name}" for name in COMPILED}
    assert names == {*run("git", "ls-files", cwd=clone).splitlines(), "PKG-INFO", *compiled}


def test_no_package_and_no_image_takes_along_what_the_guides_have_people_write(tmp_path: Path) -> None:
    """Bad luck: somebody builds in the clone in which an actor runs, and publishes its password beside its key."""
    private = ["password", "keys/sponsor/evm.json", "solver-1/settings.toml", "verifier-1/journal.jsonl", "sol.backup"]
    private += ["node/chain/state.json", "demo/keys/password", "deploy/secrets/solver-1", "kept/vouchers.sqlite"]
    for name in [*private, "deploy/compose.yaml", "verifier/assay_verifier/agent.py"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in (".gitignore", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    packed = {file.distribution_path for file in SdistBuilder(str(tmp_path)).recurse_included_files()}
    assert packed == {".gitignore", "pyproject.toml", "deploy/compose.yaml", "verifier/assay_verifier/agent.py"}
    left_out = [rule.removeprefix("**/") for rule in (ROOT / ".dockerignore").read_text().split()]
    for name in private:
        assert any(fnmatch(str(place), rule) for place in (name, *Path(name).parents) for rule in left_out), name


def test_the_wheel_of_the_sdist_is_that_of_the_clone(built: Built, tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, built.sdist, cwd=tmp_path)
    assert (tmp_path / built.wheel.name).read_bytes() == built.wheel.read_bytes()


def test_a_wheel_holds_the_five_packages_and_no_general_name(clone: Path, built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    about = f"assay-{PROJECT['project']['version']}.dist-info"
    assert {name.partition("/")[0] for name in held} == {*PACKAGES, about}
    tracked = run("git", "ls-files", "-z", *PACKAGES.values(), cwd=clone).split("\0")
    expected = {os.path.relpath(name, parent_of(name)): (clone / name).read_bytes() for name in filter(None, tracked)}
    own = {name: data for name, data in held.items() if not name.startswith(about)}
    assert own.keys() - expected.keys() == COMPILED
    assert expected.items() <= own.items()
    lines = held[f"{about}/METADATA"].decode().splitlines()
    pins = [line for f in ("requirements.in", "requirements-torch.in") for line in (ROOT / f).read_text().splitlines()]
    needs = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]
    assert {pinned(need) for need in needs if "extra ==" not in need} == {
        pinned(pin) for pin in pins if pin and not pin.startswith("#")
    }
    extras = PROJECT["project"]["optional-dependencies"]
    assert {(*pinned(need), str(Requirement(need).marker)) for need in needs if "extra ==" in need} == {
        (*pinned(pin), f'extra == "{name}"') for name, more in extras.items() for pin in more
    }


def pinned(line: str) -> tuple[str, str]:
    """Name and version of a requirement, however the name is spelt."""
    need = Requirement(line)
    return canonicalize_name(need.name), str(need.specifier)


def parent_of(name: str) -> str:
    """The source root of a tracked file of a package."""
    return next(str(Path(where).parent) for where in PACKAGES.values() if name.startswith(where + "/"))


def test_an_installed_wheel_imports_whole_and_its_doctor_is_content(built: Built, tmp_path: Path) -> None:
    made = install(tmp_path / "environment", built.wheel)
    modules = made.modules()
    assert modules.keys() == sources(ROOT).keys()
    assert all(path.is_relative_to(made.site) for path in modules.values())
    # Its kernels compile into the user's cache, never beside the modules.
    before = sorted(made.site.rglob("*.so"))
    build = (made.python, "-I", "-m", "assay.engine.runtime.native.build", "canary")
    run(*build, cwd=made.folder, ASSAY_CACHE=str(made.folder / "cache"))
    assert list((made.folder / "cache" / "native").glob("canary-*.so"))
    assert sorted(made.site.rglob("*.so")) == before
    states = made.doctor()
    assert (states["contracts"], states["anvil"]) == ("ok", "ok")
    assert made.assay("explain", "EscrowShort").startswith("EscrowShort (")
    # Its contracts are the checkout's, of which users compare the hashes.
    theirs = json.loads(run(made.python, "-I", "-c", LOAD_ALL, *READ, cwd=made.folder))
    assert theirs == json.loads(run(sys.executable, "-c", LOAD_ALL, *READ, cwd=ROOT, PYTHONPATH=":".join(ROOTS)))
    hashes = {name: "0x" + keccak(bytes.fromhex(code)).hex() for name, _, code, _, _ in theirs}
    assert json.loads((ROOT / "docs/snapshots/code.json").read_text()).items() <= hashes.items()


@pytest.mark.long
def test_an_editable_install_is_a_file_of_paths_without_a_hook(clone: Path, tmp_path: Path) -> None:
    made = install(tmp_path / "environment", "--editable", clone, ASSAY_ARTIFACTS=str(CONTRACTS))
    files = {path.name: path.read_text() for path in made.site.glob("*.pth")}
    assert files.keys() == {"_assay.pth", "zz_dependencies.pth"}
    assert files["_assay.pth"].split("\n") == [os.path.normpath(clone / root) for root in ROOTS]
    assert not list(made.site.glob("*finder*")) + list(made.site.glob("__editable__*"))
    assert made.modules() == sources(clone)
    assert made.doctor()["contracts"] == "ok"
