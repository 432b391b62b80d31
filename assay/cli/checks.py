"""Is everything there that this machine needs to take part? Each check says what it found or what to do."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.cli import platforms
from assay.protocol.errors import AssayError, ConfigError
from assay.settings import Resolved, resolve

if TYPE_CHECKING:
    from assay_ledger.chain.client import Chain
    from assay_ledger.store.blobs import BlobStore

PYTHON: Final = (3, 11), (3, 13)
"""The first that runs it, and the last that anything was tested on."""
TORCH: Final = "2.13.0"
DISK: Final = 2 << 30
"""Bytes that a demo leaves behind at most."""

PAIRING: Final = "0x" + "00" * 19 + "08"
"""The precompile by which beacons check signatures (EIP-197)."""


class CheckState(StrEnum):
    """What became of a check."""

    OK = "ok"
    BROKEN = "broken"
    SKIPPED = "skipped"
    """Nothing is configured that could be checked."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's."""

    name: str
    state: CheckState
    found: str
    remedy: str = ""


class _Skip(Exception):
    """There is nothing to check; the message says why."""


class _Broken(ConfigError):
    """A check found something wrong."""


def examine() -> list[Finding]:
    """Every check in turn; none of them changes anything but one small message in the store."""
    findings = [_finding(name, check) for name, check in _MACHINE]
    try:
        resolved = resolve()
    except AssayError as error:
        return [*findings, Finding("settings", CheckState.BROKEN, error.message, error.remedy)]
    findings.append(Finding("settings", CheckState.OK, _settings(resolved)))
    return findings + [_finding(name, partial(check, resolved)) for name, check in _CONFIGURED]


def _finding(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, CheckState.OK, check())
    except _Skip as skip:
        return Finding(name, CheckState.SKIPPED, str(skip))
    except AssayError as error:
        return Finding(name, CheckState.BROKEN, error.message, error.remedy)
    except Exception as error:  # of a driver, a library or a tool that nobody has met: the other checks are made
        words = (str(error).strip().splitlines() or ["no more is said"])[0]
        return Finding(name, CheckState.BROKEN, f"{type(error).__name__}: {words}", "Report it with `assay doctor`.")


# --- the machine


def _platform() -> str:
    if platforms.name() != platforms.TESTED:
        raise _Skip(platforms.summary())
    return platforms.name()


def _python() -> str:
    least, most = PYTHON
    found = sys.version_info[:2]
    if found < least:
        raise _Broken(
            f"This is Python {found[0]}.{found[1]}; the first that will do is {least[0]}.{least[1]}.",
            remedy="Name another: `make setup PYTHON=/path/to/python3.11`.",
        )
    return sys.version.split()[0] + (", on which nothing was tested" if found > most else "")


def _packages() -> str:
    names = ["web3", "eth-account", "safetensors", "fastapi"]
    lacking = platforms.without("obstore")
    try:
        found = ", ".join(f"{name} {version(name)}" for name in (names if lacking else [*names, "obstore"]))
        return f"{found}; {lacking}" if lacking else found
    except PackageNotFoundError as error:
        raise _Broken(f"The package {error.name} is not installed.", remedy="Run `make setup`.") from None


def _torch() -> str:
    try:
        import torch
    except ImportError as error:
        raise _Broken(f"torch cannot be loaded ({error}).", remedy="Run `make setup`.") from None
    if torch.__version__.split("+")[0] != TORCH:
        raise _Broken(f"torch is {torch.__version__}; the project pins {TORCH}.", remedy="Run `make setup`.")
    kind = "with CUDA" if torch.version.cuda else "for the CPU"
    return f"{torch.__version__} {kind}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"


def _floats() -> str:
    import torch

    from assay.engine.runtime.exact.floats import check_float_environment
    from assay.engine.runtime.products.product_variants import choose, failure

    check_float_environment()
    chosen = [choose(p, p, 1, size, size, size) for p in (8, 14, 22) for size in (32, 1024)]
    passed = sorted({variant.name for variant in chosen if not failure(variant)})
    # A path that every library can break: one rounding, subnormals kept.
    half = torch.tensor([2.0**-126]) * 0.5
    if not passed or half.item() == 0.0:
        raise _Broken("No exact product variant passes its self-test here.", remedy="Report it with `assay doctor`.")
    return f"subnormals are kept; exact product variants {', '.join(passed)}"


def _native() -> str:
    from assay.engine.runtime.executor import usable_natives
    from assay.engine.runtime.native.build import units
    from assay.engine.runtime.native.library import native

    found = {unit: native(unit) for unit in units()}
    missing = next((n.reason for n in found.values() if n.handle is None), "" if found else "no C files are installed")
    missing = missing or usable_natives()[1]
    if missing:
        raise _Skip(f"programs run by stock torch: {missing}")
    return ", ".join(f"{unit} ({n.instruction_set})" for unit, n in found.items())


def _gpu() -> str:
    """Which GPU programs may run on, or why on none."""
    from assay.engine.runtime import devices
    from assay.engine.runtime.executor import usable_triton, usual_variant
    from assay.engine.runtime.triton import backend

    usual_variant()  # raises where one is asked for and not usable
    if missing := usable_triton():
        raise _Skip(f"programs run on the CPU: {missing}")
    taken = "not taken" if usual_variant() is None else "taken"
    unseen = (
        ""
        if backend.SEEN_ON_A_GPU
        else "; make device was not seen to be right on a GPU from end to end, so --device cuda alone takes them"
    )
    return f"Triton's kernels ({backend.device_name()}), {taken} with --device {devices.asked()}{unseen}"


def _node() -> str:
    binary = shutil.which("node")
    if binary is None:
        raise _Broken(
            "Node.js is not installed.", remedy="Install Node.js 20 or newer with npm, then run `make setup`."
        )
    output = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=20).stdout.strip()
    if int(output.lstrip("v").split(".")[0] or 0) < 20:
        raise _Broken(f"Node.js is {output}.", remedy="Install Node.js 20 or newer.")
    return output


def _anvil() -> str:
    from assay_ledger.chain.node import find_anvil

    try:
        binary = find_anvil()
    except ConfigError:
        if lacking := platforms.without("anvil"):
            raise _Skip(lacking) from None
        raise
    output = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=20).stdout
    return (output.splitlines() or ["?"])[0]


def _contracts() -> str:
    from assay_ledger.chain.artifacts import artifacts_dir, load_artifact
    from assay_ledger.chain.contract_names import READ

    try:
        for name in READ:
            load_artifact(name)
    except AssayError:
        if lacking := platforms.without("forge"):
            raise _Skip(lacking) from None
        raise
    return f"{len(READ)} compiled in {artifacts_dir()}"


def _disk() -> str:
    from assay.cli.actor_folders import actors_dir

    folder = actors_dir()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < DISK:
        raise _Broken(
            f"{folder} has {free >> 20} MiB free.", remedy="Free 2 GiB, or name another folder by --data-dir."
        )
    return f"{free >> 30} GiB free in {folder}"


# --- what is configured


def _settings(resolved: Resolved) -> str:
    named = [name for name, source in resolved.sources.items() if source != "default"]
    return f"{', '.join(named)} given" if named else "defaults alone"


def _chain(resolved: Resolved) -> Chain:
    from assay_ledger.chain.client import Chain

    try:
        return Chain(resolved.settings.rpc_url, retry_for_s=0.5, timeout_s=5.0)
    except AssayError:
        if resolved.sources["rpc_url"] == "default":
            raise _Skip("no chain is named (ETH_RPC_URL), and none runs here") from None
        raise


def _rpc(resolved: Resolved) -> str:
    chain = _chain(resolved)
    head = chain.head()
    if chain.pool is not None and (bad := [s for s in chain.pool.survey() if not s.is_used]):
        raise _Broken(
            f"Of the nodes of chain {chain.chain_id}, not all serve: "
            + "; ".join(f"{s.place} ({s.words})" for s in bad),
            remedy="Actors go on with the others. Mend these, or leave them out of the RPC URLs.",
        )
    return f"chain {chain.chain_id} at {chain.place}, block {head.number}"


def _curves(resolved: Resolved) -> str:
    chain = _chain(resolved)
    answer = chain.read(lambda: chain.w3.eth.call({"to": PAIRING, "data": "0x"}))  # type: ignore[typeddict-item]
    if int.from_bytes(bytes(answer), "big") != 1:  # the product of no pairings
        raise _Broken("The chain has no BN254 precompiles (EIP-197).", remedy="Use a chain that has them.")
    return "BN254 precompiles answer"


def _run(resolved: Resolved) -> str:
    from assay.cli.common import open_round_run

    if resolved.settings.run is None:
        raise _Skip("no run is named (ASSAY_RUN)")
    run = open_round_run(resolved.settings, _chain(resolved))
    return f"0x{run.run_id.hex()}, {run.charter.rounds} rounds"


def _beacon(resolved: Resolved) -> str:
    from assay.cli.beacons import WORDS, check_relays
    from assay.cli.common import open_round_run
    from assay_ledger.deployment.places import beacon_name

    if resolved.settings.run is None:
        raise _Skip("no run is named (ASSAY_RUN)")
    chain = _chain(resolved)
    name = beacon_name(open_round_run(resolved.settings, chain).charter.beacon)
    gave = f": {check_relays(chain, resolved.settings.relays)}" if name == "evmnet" else ""
    return WORDS[name] + gave


def _store(resolved: Resolved) -> str:
    from assay_ledger.store.mirrored import open_stores

    if resolved.settings.store is None:
        raise _Skip("no store is named (ASSAY_STORE)")
    return check_store(open_stores(resolved.settings.store))


def check_store(store: BlobStore) -> str:
    """Whether a store gives back what is written to it. Raises ConfigError, and what the store raises."""
    mark = secrets.token_bytes(16)
    store.write_slot("doctor", mark)
    if store.read_slot("doctor", 64) != mark:
        raise _Broken(f"{store.location} gives back other bytes than were written.", remedy="Use another store.")
    return f"{store.location} reads and writes"


def _keys(resolved: Resolved) -> str:
    from assay_ledger.keys.keystore import find_key, list_keys

    settings = resolved.settings
    if settings.key is not None:
        path = find_key(settings.keys_dir, settings.key)
        _check_private(path)
        return f"{settings.key} at {path}"
    keys = list_keys(settings.keys_dir)
    if not keys:
        raise _Skip(f"no keys in {settings.keys_dir} (`assay key new NAME`)")
    _check_private(settings.keys_dir)
    return f"{len(keys)} in {settings.keys_dir}: {', '.join(key.name for key in keys)}"


def _check_private(path: Path) -> None:
    if path.stat().st_mode & 0o077:
        raise _Broken(f"Others can read {path}.", remedy=f"chmod -R go= {path}")


def _password(resolved: Resolved) -> str:
    file = resolved.settings.password_file
    if file is None:
        raise _Skip("no password file is named; commands ask for the password")
    if not os.access(file, os.R_OK):
        raise _Broken(f"The password file {file} cannot be read.", remedy="Check --password-file or ETH_PASSWORD.")
    return str(file)


_MACHINE: Final[tuple[tuple[str, Callable[[], str]], ...]] = (
    ("platform", _platform),
    ("python", _python),
    ("packages", _packages),
    ("torch", _torch),
    ("floating point", _floats),
    ("native kernels", _native),
    ("gpu", _gpu),
    ("node.js", _node),
    ("anvil", _anvil),
    ("contracts", _contracts),
    ("disk", _disk),
)
_CONFIGURED: Final[tuple[tuple[str, Callable[[Resolved], str]], ...]] = (
    ("chain", _rpc),
    ("curves", _curves),
    ("run", _run),
    ("beacon", _beacon),
    ("store", _store),
    ("keys", _keys),
    ("password", _password),
)
