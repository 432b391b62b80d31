"""A family is named alike, with one code, wherever codes are written down; codes may have gaps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from assay.protocol.program import nodes
from assay.protocol.program.encoding import MalformedError, decode_node
from assay.protocol.program.nodes import Family
from assay_ledger.deployment.places import FAMILY_CODES, LEAVES, by_code
from tests.harness.programs import every_family
from tools.recompute.fields import FAMILIES

ROOT = Path(__file__).resolve().parents[3]
CODES = {family.name: int(family) for family in Family}
UNCOMPUTED = {Family.INPUT, Family.CONST, Family.OUTPUT}


def found_in(name: str, pattern: str) -> dict[str, int]:
    """Names and codes as another file has them."""
    return {found: int(code) for found, code in re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"))}


def test_leaves_stand_at_their_codes_whatever_lies_between() -> None:
    assert by_code({Family.RANDOM: "d", Family.MAP: "a", Family.MAX: "b"}, "-") == ["a", "-", "b", *"-----", "d"]


def test_every_family_has_one_record() -> None:
    assert sorted(record.family for record in get_args(nodes.Node)) == sorted(Family)


def test_contracts_pages_and_the_second_implementation_have_the_same_codes() -> None:
    head = (ROOT / "contracts/libraries/Descriptor.sol").read_text(encoding="utf-8").split("MAX_RANK")[0]
    assert dict(re.findall(r"uint8 internal constant (\w+) = (\d+);", head)) == {n: str(c) for n, c in CODES.items()}
    page = found_in("docs/protocol/programs.md", r"\| (\w+) \| (\d+) \| ")
    assert {name.upper(): code for name, code in page.items()} == CODES
    assert found_in("tests/second/decode.mjs", r"\b([A-Z_]+): (\d+)\b") == CODES
    assert {name.upper(): code for code, name in FAMILIES.items()} == CODES


def test_every_family_that_computes_has_a_leaf_contract_that_knows_its_code() -> None:
    assert set(FAMILY_CODES) == set(Family) - UNCOMPUTED
    for family, contract in zip(FAMILY_CODES, LEAVES.values(), strict=True):
        text = (ROOT / "contracts" / "leaves" / f"{contract}.sol").read_text(encoding="utf-8")
        assert f"return Descriptor.{family.name};" in text


def test_the_arbiter_has_a_place_for_every_family_that_computes() -> None:
    codes = found_in("contracts/Arbiter.sol", r"constant (FIRST|LAST) = (\d+);")
    assert codes == {"FIRST": min(FAMILY_CODES), "LAST": max(FAMILY_CODES)}


def test_the_program_of_every_family_has_every_family() -> None:
    assert {node.family for node in every_family().program.nodes} == set(Family)


def test_a_code_of_no_family_is_malformed() -> None:
    for code in set(range(256)) - set(CODES.values()):
        with pytest.raises(MalformedError, match="MAL-2"):
            decode_node(bytes((code, 0, 0)))
