"""Contracts in an in-process EVM: compiled artifacts, deployment, typed calls and gas. Shared by all contract tests.

An artifact is taken from forge's output when that was compiled from the sources as they stand; otherwise the contract
and what it imports are compiled alone, with the same compiler and the settings of foundry.toml, and kept under the hash
of their sources. So no test runs yesterday's bytecode, and one broken contract does not stop the tests of the others.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from eth_abi import decode, encode
from eth_hash.auto import keccak
from pyrevm import EVM, BlockEnv

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / ".build" / "solc"
OUTPUTS = ("abi", "metadata", "evm.bytecode.object", "evm.deployedBytecode.object")
MAX_DEPLOYED = 22_118
"""Largest deployed contract in bytes: 24,576 (EIP-170) less 10 %."""

MAX_TRANSACTION_GAS = 1 << 24
MAX_MOVE_GAS = 1_000_000

_IMPORT = re.compile(r'import\s+(?:[^"\';]*\s+from\s+)?"([^"]+)"\s*;')


@dataclass(frozen=True, slots=True)
class CompiledContract:
    """One compiled contract: its ABI, creation code, deployed code, and the compiler's metadata with its NatSpec."""

    name: str
    abi: list[dict[str, Any]]
    bytecode: bytes
    deployed: bytes
    metadata: str

    def entry(self, kind: str, name: str, arity: int | None = None) -> dict[str, Any]:
        """The ABI entry of a function, event or error by name, and by number of inputs where a name is overloaded."""
        found = [
            e
            for e in self.abi
            if e["type"] == kind and e.get("name", "") == name and (arity is None or len(e["inputs"]) == arity)
        ]
        if not found:
            raise KeyError(f"{self.name} has no {kind} {name} of {arity} inputs")
        return found[0]


class Reverted(Exception):
    """A call reverted: `name` and `args` of the custom error, or the raw data."""

    def __init__(self, data: bytes, abi: Sequence[dict[str, Any]], reason: str = "") -> None:
        self.data = data
        self.name, self.values = _error(data, abi)
        super().__init__(f"{self.name}{self.values}" if self.name else f"0x{data.hex()} {reason}")


@cache
def artifact(name: str, source: str | None = None) -> CompiledContract:
    """The compiled contract of this name; `source` is its file when that is not the only one of the name."""
    path = ROOT / source if source else _find(name)
    files = _closure(path)
    compiled = _from_forge(path, name, files) or _compiled(path, files)[name]
    codes = _hex(compiled["bytecode"]), _hex(compiled["deployedBytecode"])
    return CompiledContract(name, compiled["abi"], *codes, compiled["metadata"])


class Evm:
    """An EVM at Prague with one caller account; state lasts between calls."""

    def __init__(self, caller: int = 0xCA11E7, timestamp: int = 1_700_000_000) -> None:
        self.evm = EVM(spec_id="PRAGUE")
        self.caller = _address(caller)
        self.evm.set_balance(self.caller, 10**24)
        self.evm.set_block_env(BlockEnv(number=1, timestamp=timestamp, gas_limit=30_000_000, prevrandao=bytes(32)))

    def deploy(self, name: str, *args: Any, source: str | None = None) -> EvmContract:
        """Deploy a contract with constructor arguments."""
        built = artifact(name, source)
        constructor = next((e for e in built.abi if e["type"] == "constructor"), {"inputs": []})
        code = built.bytecode + encode([_type(i) for i in constructor["inputs"]], args)
        return EvmContract(self, built, self.evm.deploy(self.caller, code, 0, 30_000_000))


class EvmContract:
    """A deployed contract. `call` runs a function and returns its decoded outputs; `gas` holds what it took."""

    def __init__(self, chain: Evm, built: CompiledContract, address: str) -> None:
        self.chain, self.artifact, self.address = chain, built, address
        self.gas = 0

    def calldata(self, function: str, *args: Any) -> bytes:
        """Selector and encoded arguments."""
        entry = self.artifact.entry("function", function, len(args))
        types = [_type(i) for i in entry["inputs"]]
        return keccak(f"{function}({','.join(types)})".encode())[:4] + encode(types, args)

    def call(self, function: str, *args: Any, caller: str | None = None, value: int = 0, gas: int = 30_000_000) -> Any:
        """Run a function as a message call of its own.

        Returns the output, a tuple of several, or None. Raises Reverted with the decoded custom error. Gas used,
        without what a transaction costs before its first instruction, is left in `gas`.
        """
        evm, data = self.chain.evm, self.calldata(function, *args)
        entry = self.artifact.entry("function", function, len(args))
        # The EVM notes each call, to take it back, and forgets none: a million of views took gigabytes.
        before = evm.snapshot() if entry["stateMutability"] in ("view", "pure") else None
        try:
            output = bytes(evm.message_call(caller or self.chain.caller, self.address, data, value, gas))
        except RuntimeError as error:
            raise Reverted(_revert_data(str(error)), self.artifact.abi, str(error)) from None
        finally:
            if before is not None:
                evm.revert(before)
        result = evm.result
        assert result is not None
        self.gas = result.gas_used - intrinsic_gas(data)
        values = decode([_type(o) for o in entry["outputs"]], output)
        return values[0] if len(values) == 1 else values or None


def intrinsic_gas(data: bytes) -> int:
    """What a transaction with this calldata costs before its first instruction (EIP-2028)."""
    zeros = data.count(0)
    return 21_000 + 4 * zeros + 16 * (len(data) - zeros)


def transaction_gas(data: bytes, execution: int) -> int:
    """Gas of a transaction with this calldata and execution, with the floor of EIP-7623."""
    zeros = data.count(0)
    floor = 21_000 + 10 * zeros + 40 * (len(data) - zeros)
    return max(floor, intrinsic_gas(data) + execution)


def sources() -> list[Path]:
    """Every Solidity source of ours, tests left out."""
    return sorted(p for p in (ROOT / "contracts").rglob("*.sol") if "test" not in p.relative_to(ROOT).parts)


# --- compilation


def _find(name: str) -> Path:
    """The file under contracts/ that declares a contract."""
    declared = re.compile(rf"^\s*(?:abstract\s+)?(?:contract|library|interface)\s+{re.escape(name)}\b", re.MULTILINE)
    found = [p for p in sorted((ROOT / "contracts").rglob("*.sol")) if declared.search(p.read_text())]
    if len(found) != 1:
        raise KeyError(f"{name} is declared in {len(found)} files: name its source")
    return found[0]


def _absolute(path: Path) -> Path:
    """A path without `..`; links are kept, since node_modules may be one."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _unit(path: Path) -> str:
    """The name of a source as the compiler sees it: its path in the repository."""
    return _absolute(path).relative_to(ROOT).as_posix()


def _resolve(target: str, importer: Path) -> Path:
    """The file that an import names."""
    return _absolute(importer.parent / target) if target.startswith(".") else ROOT / "node_modules" / target


def _closure(path: Path) -> dict[str, str]:
    """The text of a source and of all that it imports, by unit name."""
    texts: dict[str, str] = {}
    pending = [_absolute(path)]
    while pending:
        file = pending.pop()
        if _unit(file) in texts:
            continue
        text = file.read_text()
        texts[_unit(file)] = text
        pending += [_resolve(target, file) for target in _IMPORT.findall(text)]
    return dict(sorted(texts.items()))


@cache
def _settings() -> dict[str, Any]:
    """Compiler settings as foundry.toml has them."""
    profile = tomllib.loads((ROOT / "foundry.toml").read_text())["profile"]["default"]
    return {
        "optimizer": {"enabled": profile["optimizer"], "runs": profile["optimizer_runs"]},
        "evmVersion": profile["evm_version"],
        "viaIR": profile["via_ir"],
        "metadata": {"bytecodeHash": profile["bytecode_hash"], "appendCBOR": profile["cbor_metadata"]},
        "remappings": profile["remappings"],
    }


def _from_forge(path: Path, name: str, files: dict[str, str]) -> dict[str, Any] | None:
    """Forge's artifact, when its sources and settings are the present ones."""
    out = ROOT / ".build" / "forge" / "out" / path.name / f"{name}.json"
    try:
        found = json.loads(out.read_text())
        metadata = found["metadata"]
    except (OSError, ValueError, KeyError):
        return None
    compiled = {unit: entry["keccak256"] for unit, entry in metadata["sources"].items()}
    present = {unit: "0x" + keccak(text.encode()).hex() for unit, text in files.items()}
    # A file that is imported but contributes nothing may be missing from the metadata.
    fresh = compiled.items() <= present.items() and _unit(path) in compiled
    settings, wanted = metadata["settings"], _settings()
    same = (
        settings["optimizer"]["runs"] == wanted["optimizer"]["runs"]
        and settings["optimizer"]["enabled"] == wanted["optimizer"]["enabled"]
        and settings["evmVersion"] == wanted["evmVersion"]
    )
    if not (fresh and same):
        return None
    return {
        "abi": found["abi"],
        "bytecode": found["bytecode"]["object"],
        "deployedBytecode": found["deployedBytecode"]["object"],
        "metadata": found["rawMetadata"],
    }


def _compiled(path: Path, files: dict[str, str]) -> dict[str, dict[str, Any]]:
    """All contracts of one source, compiled alone and kept under the hash of everything that went in."""
    job = {
        "language": "Solidity",
        "sources": {unit: {"content": text} for unit, text in files.items()},
        "settings": _settings() | {"outputSelection": {_unit(path): {"*": list(OUTPUTS)}}},
    }
    compiler = (ROOT / "node_modules" / "solc" / "package.json").read_text()
    key = sha256((json.dumps(job, sort_keys=True) + json.loads(compiler)["version"]).encode()).hexdigest()
    kept = BUILD / f"{path.stem}-{key[:24]}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text()))
    run = subprocess.run(
        [str(ROOT / "tools" / "solc"), "--standard-json"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=True,
    )
    output = json.loads(run.stdout)
    errors = [e["formattedMessage"] for e in output.get("errors", []) if e["severity"] == "error"]
    if errors:
        raise RuntimeError("\n".join([f"{_unit(path)} does not compile", *errors]))
    contracts = {
        name: {
            "abi": c["abi"],
            "bytecode": c["evm"]["bytecode"]["object"],
            "deployedBytecode": c["evm"]["deployedBytecode"]["object"],
            "metadata": c["metadata"],
        }
        for name, c in output["contracts"][_unit(path)].items()
    }
    BUILD.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(contracts))
    temporary.replace(kept)
    return contracts


# --- ABI


def _hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _address(number: int) -> str:
    return f"0x{number:040x}"


def _type(entry: dict[str, Any]) -> str:
    """The canonical type of an ABI input, tuples written out."""
    kind = str(entry["type"])
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(_type(c) for c in entry['components'])}){kind.removeprefix('tuple')}"


def _revert_data(message: str) -> bytes:
    """The returned bytes in the message of pyrevm's RuntimeError."""
    found = re.search(r"output: (?:Bytes\()?0x([0-9a-f]*)", message)
    return bytes.fromhex(found.group(1)) if found else b""


def _error(data: bytes, abi: Sequence[dict[str, Any]]) -> tuple[str, tuple[Any, ...]]:
    """Name and values of the custom error in revert data."""
    builtin = [
        {"type": "error", "name": "Error", "inputs": [{"type": "string"}]},
        {"type": "error", "name": "Panic", "inputs": [{"type": "uint256"}]},
    ]
    for entry in [*abi, *builtin]:
        if entry["type"] == "error":
            types = [_type(i) for i in entry["inputs"]]
            if keccak(f"{entry['name']}({','.join(types)})".encode())[:4] == data[:4]:
                return str(entry["name"]), tuple(decode(types, data[4:]))
    return "", ()
