"""Every term of the charter has a row in the table; its bounds hold at their limits, in contract and model alike."""

from __future__ import annotations

import random
import re
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, get_type_hints

import pytest

from assay.protocol.economics.formulas import check_charter, min_exit
from assay.protocol.errors import RejectedError
from assay.protocol.run import charter as charter_module
from assay.protocol.run.charter import TERMS_TYPE, Charter, Modules, modules_tuple
from tests.harness.contracts import harness
from tests.harness.contracts.terms_limits import BASE, FREE, NOW, SLOW, Limit, limits
from tests.harness.contracts.world import NOBODY

TABLE = harness.ROOT / "docs" / "protocol" / "charter.md"
SOURCE = harness.ROOT / "contracts" / "interfaces" / "ICharter.sol"
BY_THE_GAME = {"windows.longestDispute": {"DisputeTooLong"}, "clocks.arity": {"WrongArity"}}
"""Refused by the game's constructor (test_game_bounds.py)."""

MODULES = modules_tuple(Modules(*(NOBODY for _ in fields(Modules))))
LIMITS = list(limits())


@cache
def chain() -> harness.Evm:
    """An EVM in this process, at the time that the limits name."""
    return harness.Evm(timestamp=NOW)


def by_contract(terms: Charter) -> tuple[str, str | None] | None:
    """The error under which the charter's constructor refuses the terms, and the field that it names."""
    try:
        chain().deploy("Charter", terms.as_tuple(), MODULES)
    except RuntimeError as error:
        built = harness.artifact("Charter")
        name, values = harness._error(harness._revert_data(str(error)), built.abi)
        assert name, error
        entry = built.entry("error", name)
        named = {i["name"]: v for i, v in zip(entry["inputs"], values, strict=True)}
        return name, named["what"].rstrip(b"\0").decode() if "what" in named else None
    return None


def by_model(terms: Charter) -> tuple[str, str | None] | None:
    """The same of protocol.economics."""
    try:
        check_charter(terms, NOW)
    except RejectedError as error:
        what = error.details.get("what")
        return error.code, None if what is None else str(what)
    return None


@pytest.mark.parametrize("limit", LIMITS, ids=[f"{x.term} {x.code} {x.what}" for x in LIMITS])
def test_contract_and_model_admit_a_term_at_its_limit_and_refuse_it_beyond(limit: Limit) -> None:
    assert by_contract(limit.inside) is by_model(limit.inside) is None
    assert by_contract(limit.beyond) == by_model(limit.beyond) == (limit.code, limit.what)


def test_every_field_of_the_terms_has_a_row_and_every_row_its_limits() -> None:
    rows = table()
    assert list(rows) == solidity_fields() == python_fields(Charter)
    for term, codes in rows.items():
        played = {x.code for x in LIMITS if x.term == term} | BY_THE_GAME.get(term, set())
        assert codes == played, term


def test_the_types_of_the_text_are_those_of_the_contract() -> None:
    (block,) = re.findall(r"^```\n(Terms .*?)```", TABLE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    kinds = dict(re.findall(r"(\w+) += \(([^)]*)\)", block))

    def written(kind: str) -> str:
        fields_ = [field.split()[0] for field in kinds[kind].split(",")]
        return "(" + ",".join(written(f) if f in kinds else f for f in fields_) + ")"

    constructor = next(e for e in harness.artifact("Charter").abi if e["type"] == "constructor")
    assert written("Terms") == harness._type(constructor["inputs"][0]) == TERMS_TYPE


def table() -> dict[str, set[str]]:
    """The table's rows: term to the errors that refuse it, in order."""
    rows = re.findall(r"^\| `([\w.]+)` \|.*\|([^|]*)\|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    return {term: set(re.findall(r"`(\w+)`", codes)) for term, codes in rows}


def solidity_fields() -> list[str]:
    """The fields of `Terms` in ICharter.sol, structs written out."""
    source = re.sub(r"//.*", "", SOURCE.read_text(encoding="utf-8"))
    structs = {
        name: re.findall(r"^\s*([\w\[\]]+)\s+(\w+);", body, re.MULTILINE)
        for name, body in re.findall(r"struct (\w+) \{(.*?)\}", source, re.DOTALL)
    }

    def walk(name: str, prefix: str) -> list[str]:
        found = []
        for kind, field in structs[name]:
            found += walk(kind, f"{prefix}{field}.") if kind in structs else [prefix + field]
        return found

    return walk("Terms", "")


def python_fields(kind: Any, prefix: str = "") -> list[str]:
    """The fields of `Charter`, named as in Solidity."""
    found = []
    hints = get_type_hints(kind, vars(charter_module))
    for field in fields(kind):
        head, *rest = field.name.split("_")
        name = prefix + head + "".join(word.capitalize() for word in rest)
        inner = hints[field.name]
        found += python_fields(inner, f"{name}.") if is_dataclass(inner) else [name]
    return found


# --- many terms at once


def draw(rng: random.Random) -> Charter:
    """Terms of which a few lie at, or just beside, what they are compared with."""
    terms = rng.choice([BASE, FREE, SLOW, *(x.inside for x in LIMITS)])
    for _ in range(rng.randrange(1, 4)):
        terms = moved(terms, rng)
    if rng.random() < 0.6:
        exit_ = min_exit(terms.windows, terms.chain.inclusion_delay) + 1
        if exit_ < 1 << 64:
            terms = replace(terms, windows=replace(terms.windows, exit=exit_))
    return terms


def moved(terms: Charter, rng: random.Random) -> Charter:
    """One term taken from another limit, or set to a corner of its type or a step from where it is."""
    part = rng.choice(["training", "windows", "economics", "clocks", "chain"])
    group = getattr(terms, part)
    field = rng.choice([f.name for f in fields(group)])
    value = getattr(group, field)
    if isinstance(value, bool):
        changed: Any = not value
    elif isinstance(value, bytes):
        changed = rng.choice([value, bytes(32)])
    else:
        bits = widths()[part, field]
        other = getattr(getattr(rng.choice(LIMITS).beyond, part), field)
        corners = (0, 1, value - 1, value + 1, value * 2, (1 << bits) - 1, 1 << rng.randrange(bits), other, other)
        changed = min(max(rng.choice(corners), 0), (1 << bits) - 1)
    return replace(terms, **{part: replace(group, **{field: changed})})


@cache
def widths() -> dict[tuple[str, str], int]:
    """Bits of each integer of the terms, as Solidity has them."""
    source = re.sub(r"//.*", "", SOURCE.read_text(encoding="utf-8"))
    found = {}
    parts = ("training", "windows", "economics", "clocks", "chain")
    for part, name in zip(parts, ("Training", "Windows", "Economics", "Clocks", "ChainProfile"), strict=True):
        body = re.search(rf"struct {name} \{{(.*?)\}}", source, re.DOTALL)
        assert body is not None
        for bits, field in re.findall(r"uint(\d+) (\w+);", body[1]):
            found[part, re.sub(r"([A-Z])", lambda m: "_" + m[1].lower(), field)] = int(bits)
    return found


def compare(count: int, seed: int) -> None:
    rng = random.Random(seed)
    outcomes: set[str] = set()
    for number in range(count):
        terms = draw(rng)
        answer = by_contract(terms)
        assert answer == by_model(terms), (seed, number, terms)
        outcomes.add("admitted" if answer is None else answer[0])
    assert {"admitted", "AmountTooLarge", "WindowTooShort", "ScheduleTooLong"} <= outcomes


def test_charters_near_the_limits_are_judged_alike_by_contract_and_model() -> None:
    compare(1000, seed=9)


@pytest.mark.long
def test_many_charters_near_the_limits_are_judged_alike_by_contract_and_model() -> None:
    for seed in range(100):
        compare(1000, seed)
