"""abi.encode of the protocol is that of eth_abi, which was written by others, and refuses what does not fit."""

from typing import Any

import eth_abi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol import abi
from assay.protocol.errors import InvariantError


def values_of(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type, of lists at most three."""
    if kind.endswith("]"):
        inner, _, count = kind[:-1].rpartition("[")
        least, most = (int(count), int(count)) if count else (0, 3)
        return st.lists(values_of(inner), min_size=least, max_size=most)
    if kind.startswith("("):
        return st.tuples(*map(values_of, abi._members(kind[1:-1])))
    if kind.startswith("uint"):
        return st.integers(0, (1 << int(kind[4:])) - 1)
    sizes = {"address": 20, "bytes32": 32}
    if kind in sizes:
        return st.binary(min_size=sizes[kind], max_size=sizes[kind])
    return {"bool": st.booleans(), "bytes": st.binary(max_size=70), "string": st.text(max_size=40)}[kind]


WORDS = st.sampled_from(["uint8", "uint48", "uint256", "bool", "address", "bytes32", "bytes", "string"])
TYPES = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        inner.map(lambda t: f"{t}[]"),
        st.tuples(inner, st.integers(1, 3)).map(lambda p: f"{p[0]}[{p[1]}]"),
        st.lists(inner, min_size=1, max_size=3).map(lambda ts: f"({','.join(ts)})"),
    ),
    max_leaves=5,
)


@given(st.lists(TYPES, max_size=4).flatmap(lambda ts: st.tuples(st.just(ts), st.tuples(*map(values_of, ts)))))
def test_values_of_any_types_are_encoded_as_the_library_does(drawn: tuple[list[str], tuple[Any, ...]]) -> None:
    types, values = drawn
    assert abi.encode(types, values) == eth_abi.encode(types, values)


@pytest.mark.parametrize(("kind", "largest"), [("uint8", 255), ("uint48", (1 << 48) - 1), ("uint256", (1 << 256) - 1)])
def test_the_largest_number_fits_and_one_more_does_not(kind: str, largest: int) -> None:
    assert abi.encode([kind], [largest]) == largest.to_bytes(32, "big")
    with pytest.raises(InvariantError, match=f"does not fit {kind}"):
        abi.encode([kind], [largest + 1])


@pytest.mark.parametrize(
    ("kind", "value"),
    [("uint8", -1), ("uint8", "1"), ("bool", 1), ("address", bytes(19)), ("bytes32", bytes(31)), ("bytes32", "0" * 32)],
)
def test_a_value_of_another_type_or_length_is_refused(kind: str, value: object) -> None:
    with pytest.raises(InvariantError) as refused:
        abi.encode([kind], [value])
    assert refused.value.code == "WordOutOfRange"


@pytest.mark.parametrize("values", [[1], [1, 2, 3]])
def test_as_many_values_as_types_are_taken(values: list[int]) -> None:
    with pytest.raises(InvariantError, match="where 2 are needed"):
        abi.encode(["uint8", "uint8"], values)


@given(st.lists(st.integers(0, (1 << 32) - 1), max_size=9))
def test_words_of_many_are_those_of_each(values: list[int]) -> None:
    assert abi.uints(values, 32) == b"".join(abi.uint(value, 32) for value in values)


@pytest.mark.parametrize("odd", [1 << 32, -1, 1.0, "1", None])
def test_many_are_refused_where_one_does_not_fit(odd: object) -> None:
    assert len(abi.uints([0, (1 << 32) - 1], 32)) == 64
    with pytest.raises(InvariantError):
        abi.uints([0, odd, 1], 32)  # type: ignore[list-item]
