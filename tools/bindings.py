"""Writes `ledger/assay_ledger/bindings/`, the typed bindings of the contracts, from what forge compiled.

tools/bindings.py [--check]        --check compares only

One module per contract: a method per function, named after it in Python's way, whose docstring is the notice of the
function's NatSpec; a frozen dataclass per event, declared as in Solidity. Structs that contracts give are
`<name>Fields` unless the protocol has a class for them; those of several contracts, and long ones, stand in
`structs`. Numbers are the protocol's newtypes, by the tables of tools/binding_tables.py.
"""

import argparse
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from assay.protocol.run.run_charter import RUN_TERMS_TYPE
from tools.binding_structs import ROOT, compiled, known_structs, struct_of
from tools.binding_tables import CONTRACTS, ENUMS, LEFT_OUT, NAMED, ONE_INTERFACE, ROUNDS, STRUCTS, TERMS, TYPES, WEI

FOLDER = ROOT / "ledger" / "assay_ledger" / "bindings"
PACKAGE = "assay_ledger.bindings"

READS = {"view", "pure"}


@dataclass
class BindingModule:
    """A module as it is written: what it imports by module, and its lines."""

    imports: dict[str, set[str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def use(self, module: str, name: str) -> str:
        """A name that the module imports."""
        self.imports.setdefault(module, set()).add(name)
        return name

    def text(self, doc: str) -> str:
        """The source, before ruff formats it."""
        names = (f"from {m} import {', '.join(sorted(n))}" for m, n in sorted(self.imports.items()))
        return "\n".join([f'"""{doc}"""', "", "from __future__ import annotations", "", *names, "", *self.lines, ""])


def snake(name: str) -> str:
    """A Solidity name in Python's way: gameId is game_id, after_ is after, from is from_."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.strip("_")).lower()
    return words + "_" if keyword.iskeyword(words) else words


def length_of(kind: str) -> int:
    """How many elements the type of a list has, where that is fixed and few; else 0."""
    count = kind[kind.rindex("[") + 1 : -1]
    return int(count) if count and int(count) <= 4 else 0


def enum_of(item: dict[str, Any]) -> str | None:
    """The enum that a type is."""
    kind, _, name = item.get("internalType", "").partition(" ")
    return name.split(".")[-1] if kind == "enum" else None


def abi_type(item: dict[str, Any]) -> str:
    """The canonical ABI type, structs written out."""
    if not item["type"].startswith("tuple"):
        return str(item["type"])
    return f"({','.join(map(abi_type, item['components']))}){item['type'].removeprefix('tuple')}"


def signature(entry: dict[str, Any]) -> str:
    """The canonical signature of a function or an event."""
    return f"{entry['name']}({','.join(map(abi_type, entry['inputs']))})"


class Writer:
    """Writes types, in one module."""

    def __init__(self, module: BindingModule, home: str) -> None:
        """`home`: the module's name."""
        self.module = module
        self._home = home

    def hint(self, item: dict[str, Any], name: str = "", is_argument: bool = False) -> str:
        """The type of a value; lists are any sequence where they are taken, tuples where they are given."""
        kind = item["type"]
        if kind.endswith("]"):
            inner = self.hint({**item, "type": kind[: kind.rindex("[")]}, name)
            if not is_argument and (count := length_of(kind)):
                return f"tuple[{', '.join([inner] * count)}]"
            if is_argument:
                return f"{self.module.use('collections.abc', 'Sequence')}[{inner}]"
            return f"tuple[{inner}, ...]"
        if (struct := struct_of(item)) is not None:
            return self._struct(struct)
        if (enum := enum_of(item)) is not None:
            return self.module.use(ENUMS[enum], enum)
        plain = {"address": "Address", "bytes32": "Digest", "bool": "bool", "string": "str"}.get(kind)
        if plain is None:
            plain = "bytes" if kind.startswith("bytes") else self._number(name or item["name"])
        return self.module.use(TYPES[plain], plain) if plain in TYPES else plain

    def value(self, item: dict[str, Any], source: str, name: str = "") -> str:
        """An expression that makes a typed value of what an ABI decoder gives."""
        kind = item["type"]
        if kind.endswith("]"):
            part = {**item, "type": kind[: kind.rindex("[")]}
            if count := length_of(kind):
                return f"({', '.join(self.value(part, f'{source}[{k}]', name) for k in range(count))})"
            inner = self.value(part, "x", name)
            return f"tuple({source})" if inner == "x" else f"tuple({inner} for x in {source})"
        if (struct := struct_of(item)) is not None:
            return self._made(struct, source)
        if kind == "address":
            return f"{self.module.use('assay_ledger.contract', 'address')}({source})"
        hint = self.hint(item, name)
        return source if hint in ("int", "bool", "bytes", "str") else f"{hint}({source})"

    def _number(self, name: str) -> str:
        name = name.strip("_")
        if name in ROUNDS:
            return "Round"
        return NAMED.get(name, "Wei" if name in WEI else "int")

    def _struct(self, struct: str) -> str:
        if struct in STRUCTS:
            return self.module.use(*STRUCTS[struct])
        return self._of_struct(struct, f"{struct}Fields")

    def _made(self, struct: str, source: str) -> str:
        if struct == TERMS:
            return f"{self._struct(struct)}.from_tuple({source})"
        if struct in STRUCTS:
            return f"{self._of_struct(struct, f'as_{snake(struct)}')}({source})"
        return f"{self._struct(struct)}.of({source})"

    def _of_struct(self, struct: str, name: str) -> str:
        home = known_structs()[struct].home
        return name if home == self._home else self.module.use(f"{PACKAGE}.{home}", name)


def docstring(text: str, indent: int = 4) -> Iterator[str]:
    """A docstring of one paragraph, wrapped."""
    pad = " " * indent
    lines = textwrap.wrap(text, 116 - indent)
    if len(lines) == 1 and len(text) + indent + 6 <= 120:
        yield f'{pad}"""{text}"""'
        return
    yield f'{pad}"""{lines[0]}'
    yield from (f"{pad}{line}" for line in lines[1:])
    yield f'{pad}"""'


def notice(contract: dict[str, Any], kind: str, of: str, otherwise: str) -> str:
    """What NatSpec says of a function or an event, its first sentence, or something else where it says nothing."""
    found = contract["metadata"]["output"]["userdoc"].get(kind, {}).get(of, {}).get("notice", "")
    sentence = re.split(r"(?<=[.?!]) (?=[A-Z`])", " ".join(found.split()))[0]
    return (sentence if sentence.endswith((".", "?", "!")) else f"{sentence}.") if sentence else otherwise


def function(module: BindingModule, contract: dict[str, Any], entry: dict[str, Any]) -> Iterator[str]:
    """The method of a function."""
    write, called = Writer(module, CONTRACTS[contract["name"]]), signature(entry)
    names = [snake(item["name"] or f"argument_{k}") for k, item in enumerate(entry["inputs"])]
    taken = [f"{n}: {write.hint(item, is_argument=True)}" for n, item in zip(names, entry["inputs"], strict=True)]
    reads = entry["stateMutability"] in READS
    outputs = entry["outputs"]
    one = entry["name"] if len(outputs) == 1 and not outputs[0]["name"] else ""
    hints = [write.hint(item, one) for item in outputs]
    result = hints[0] if len(hints) == 1 else f"tuple[{', '.join(hints)}]"
    given = f"{module.use('assay_ledger.contract', 'Query')}[{result}]"
    if not reads:
        given = module.use("assay_ledger.contract", "Call")
    yield f"    def {snake(entry['name'])}({', '.join(['self', *taken])}) -> {given}:"
    yield from docstring(notice(contract, "methods", called, f"`{entry['name']}`."), 8)
    if not reads:
        yield f"        return self._call({', '.join([quoted(module, called), *names])})"
    else:
        values = [write.value(item, f"v[{k}]", one) for k, item in enumerate(outputs)]
        made = values[0] if len(values) == 1 else f"({', '.join(values)})"
        results = quoted(module, f"({','.join(map(abi_type, outputs))})")
        yield f"        return self._query({', '.join([quoted(module, called), results, f'lambda v: {made}', *names])})"
    yield ""


def quoted(module: BindingModule, abi: str) -> str:
    """A signature as a string; the terms of a run by their name."""
    if RUN_TERMS_TYPE not in abi:
        return repr(abi)
    name = module.use(STRUCTS[TERMS][0], "RUN_TERMS_TYPE")
    return "f" + repr(abi.replace(RUN_TERMS_TYPE, f"{{{name}}}"))


def event(module: BindingModule, contract: dict[str, Any], entry: dict[str, Any]) -> Iterator[str]:
    """The dataclass of an event."""
    write, inputs = Writer(module, CONTRACTS[contract["name"]]), entry["inputs"]
    for name in ("Event", "Decoded"):
        module.use("assay_ledger.contract", name)
    module.use("dataclasses", "dataclass")
    module.use("typing", "ClassVar")
    if any(i["indexed"] and re.search(r"\]$|^(bytes|string|tuple)$", i["type"]) for i in inputs):
        sys.exit(f"{entry['name']}: an indexed argument of which the log has only a hash")
    declared = ", ".join(f"{abi_type(i)}{' indexed' if i['indexed'] else ''} {i['name']}" for i in inputs)
    yield "@dataclass(frozen=True, slots=True)"
    yield f"class {entry['name']}(Event):"
    yield from docstring(notice(contract, "events", signature(entry), f"`{entry['name']}` of {contract['name']}."))
    yield ""
    yield f"    ABI: ClassVar = {literal(entry['name'] + '(' + declared + ')', 4)}"
    yield from (f"    {snake(item['name'])}: {write.hint(item)}" for item in inputs)
    yield ""
    yield "    @classmethod"
    yield f"    def _of(cls, v: Decoded) -> {entry['name']}:"
    yield f"        return cls({', '.join(write.value(item, f'v[{k}]') for k, item in enumerate(inputs))})"
    yield ""
    yield ""


def literal(text: str, indent: int) -> str:
    """A string that may be too long for a line."""
    if len(text) + indent + 18 <= 120:
        return repr(text)
    pad = "\n" + " " * (indent + 4)
    return "(" + "".join(pad + repr(line) for line in _cut(text, 106)) + "\n" + " " * indent + ")"


def _cut(text: str, width: int) -> Iterator[str]:
    while len(text) > width:
        at = text.rindex(", ", 0, width) + 2
        yield text[:at]
        text = text[at:]
    yield text


def class_name(contract: str) -> str:
    """The class of a contract; pytest takes what begins with Test for tests."""
    return f"{contract.removeprefix('Test')}Contract"


def binding(contract: dict[str, Any]) -> str:
    """The module of a contract."""
    module, abi = BindingModule(), contract["abi"]
    left_out = LEFT_OUT.get(contract["name"], set())
    functions = [entry for entry in abi if entry["type"] == "function" and entry["name"] not in left_out]
    events = [entry for entry in abi if entry["type"] == "event"]
    names = [snake(entry["name"]) for entry in functions]
    if len(set(names)) < len(names):
        sys.exit(f"{contract['name']}: two functions of one name")
    structs(module, CONTRACTS[contract["name"]])
    twin = ONE_INTERFACE.get(contract["name"])
    known = {signature(e) for e in compiled(twin)["abi"] if e["type"] == "event"} if twin else set()
    for entry in events:
        if twin and signature(entry) in known:
            module.use(f"{PACKAGE}.{CONTRACTS[twin]}", entry["name"])
        else:
            module.lines += event(module, contract, entry)
    module.use("assay_ledger.contract", "Contract")
    module.lines += [f"class {class_name(contract['name'])}(Contract):"]
    module.lines += docstring(f"`{contract['path']}` at an address.")
    module.lines += [""]
    module.lines += ["    EVENTS = (", *(f"{e['name']}," for e in events), "    )", ""]
    calls = [f"{quoted(module, signature(e))}," for e in functions if e["stateMutability"] not in READS]
    module.lines += ["    CALLS = (", *calls, "    )", ""]
    for entry in functions:
        module.lines += function(module, contract, entry)
    return module.text(f"Calls, queries and events of {contract['path']}. Written by tools/bindings.py: do not edit.")


def structs(module: BindingModule, home: str) -> None:
    """Writes the structs of a module."""
    write = Writer(module, home)
    for name, struct in known_structs().items():
        if struct.home != home:
            continue
        module.use("assay_ledger.contract", "Decoded")
        values = ", ".join(write.value(item, f"v[{k}]") for k, item in enumerate(struct.parts))
        if name in STRUCTS:
            module.lines += [
                f"def as_{snake(name)}(v: Decoded) -> {write.hint({'type': 'tuple', 'internalType': name})}:"
            ]
            module.lines += docstring(f"A `{name}` as a contract gives it.")
            module.lines += [f"    return {module.use(*STRUCTS[name])}({values})", "", ""]
            continue
        module.use("dataclasses", "dataclass")
        module.lines += ["@dataclass(frozen=True, slots=True)", f"class {name}Fields:"]
        module.lines += docstring(f"The struct `{name}`, as contracts give it.")
        module.lines += ["", *(f"    {snake(item['name'])}: {write.hint(item)}" for item in struct.parts), ""]
        module.lines += ["    @staticmethod", f"    def of(v: Decoded) -> {name}Fields:"]
        module.lines += docstring("Of its fields in order.", 8)
        module.lines += [f"        return {name}Fields({values})", "", ""]


def shared() -> str:
    """The module of the structs that several contracts have."""
    module = BindingModule()
    structs(module, "structs")
    return module.text("Structs of several contracts. Written by tools/bindings.py: do not edit.")


def written() -> dict[str, str]:
    """Every file of the folder by its name, as it should be."""
    files = {f"{CONTRACTS[name]}.py": binding(compiled(name)) for name in CONTRACTS}
    files["structs.py"] = shared()
    files["__init__.py"] = '"""The contracts as typed Python, a module each. Written by tools/bindings.py."""'
    return {name: formatted(text) for name, text in files.items()}


def formatted(source: str) -> str:
    """The source as `make format` leaves it."""
    for command in (["check", "--fix-only", "--select", "I,F401", "--quiet"], ["format", "--quiet"]):
        name = str(FOLDER / "generated.py")
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", name, "-"]
        source = subprocess.run(ruff, cwd=ROOT, check=True, capture_output=True, text=True, input=source).stdout
    return source


def main() -> int:
    """Write the folder, or with --check say what in it is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    files = written()
    there = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.py"))}
    wrong = sorted(name for name in files.keys() | there.keys() if files.get(name) != there.get(name))
    if options.check:
        for name in wrong:
            print(f"{(FOLDER / name).relative_to(ROOT)} is not what the contracts say: run tools/bindings.py.")
        return min(len(wrong), 1)
    FOLDER.mkdir(exist_ok=True)
    for name in wrong:
        if name in files:
            (FOLDER / name).write_text(files[name])
        else:
            (FOLDER / name).unlink()
    print(f"{len(files)} files in {FOLDER.relative_to(ROOT)}, {len(wrong)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
