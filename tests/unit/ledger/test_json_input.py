"""JSON from strangers: what is read, what is refused, and that nothing of it can kill the process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_ledger.json_input import JsonRefused, parse_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(values)
def test_what_python_writes_is_read_back(value: object) -> None:
    assert parse_json(json.dumps(value).encode(), max_bytes=1 << 20, max_depth=100) == value


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@given(values, st.integers(0, 4))
def test_the_depth_bound_counts_brackets_outside_strings(value: object, most: int) -> None:
    data = json.dumps(value).encode()
    if depth_of(value) <= most:
        assert parse_json(data, max_bytes=1 << 20, max_depth=most) == value
    else:
        with pytest.raises(JsonRefused, match="deep"):
            parse_json(data, max_bytes=1 << 20, max_depth=most)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff", b'"\xed\xa0\x80"', b"1.0", b"1e9", b"NaN", b"-Infinity", b'{"a":1,"a":2}', b"9" * 5000],
)
def test_what_is_not_strict_json_is_refused(data: bytes) -> None:
    with pytest.raises(JsonRefused):
        parse_json(data, max_bytes=1 << 20)


def test_the_length_is_bounded() -> None:
    assert parse_json(b"[1]", max_bytes=3) == [1]
    with pytest.raises(JsonRefused, match="bytes"):
        parse_json(b"[1] ", max_bytes=3)


@pytest.mark.parametrize("opening", ["[", '{"a":', '["]",', '["\\\\",'])
def test_a_file_of_brackets_cannot_kill_a_process_whose_recursion_limit_was_raised(opening: str) -> None:
    code = (
        "import sys; sys.setrecursionlimit(10**6)\n"
        "from assay_ledger.json_input import JsonRefused, parse_json\n"
        "try: parse_json(sys.argv[1].encode() * 20000, max_bytes=1 << 20)\n"
        "except JsonRefused: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code, opening], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr
