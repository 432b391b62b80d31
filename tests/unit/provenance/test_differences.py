"""Two models compared bit by bit: what differs is counted, whatever the numbers are, and hostile files are refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from assay.engine.runtime.values.state_io import spec_of, to_lists_of_bytes
from assay.protocol.errors import ConfigError, ExitCode
from assay.provenance.differences import (
    CHUNK,
    TensorDifference,
    TensorForm,
    differences,
    root_in_order,
    says_root,
    sha256_of,
)
from assay_ledger.store.objects import root_of_list
from tests.harness.commands import assay

NAN = math.nan


def compared(folder: Path, a: Tensor, b: Tensor) -> TensorDifference:
    """The difference of two files of one tensor."""
    for name, t in (("a", a), ("b", b)):
        save_file({"t": t}, folder / name)
    (found,) = differences(folder / "a", folder / "b")
    return found


CASES = {
    "equal": ([1.0, 2.0], [1.0, 2.0], (0, None, 0)),
    "one": ([1.0, 2.0], [1.0, 2.5], (1, 0.5, 0)),
    "zeros": ([0.0], [-0.0], (1, 0.0, 0)),
    "same-nan": ([NAN, 1.0], [NAN, 1.0], (0, None, 0)),
    "nan": ([NAN, 1.0], [0.0, 4.0], (2, 3.0, 1)),
    "infinite": ([math.inf], [1.0], (1, None, 1)),
    "empty": ([], [], (0, None, 0)),
}


@pytest.mark.parametrize(("a", "b", "wanted"), CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float64], ids=lambda t: str(t).removeprefix("torch.")
)
def test_elements_are_counted_by_their_bits(
    tmp_path: Path, dtype: torch.dtype, a: list[float], b: list[float], wanted: tuple[int, float | None, int]
) -> None:
    found = compared(tmp_path, torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype))
    assert (found.differing, found.largest, found.not_finite) == wanted
    assert found.equal is (wanted[0] == 0)
    json.dumps(found.document(), allow_nan=False)


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.uint8, torch.bool, torch.float8_e4m3fn], ids=lambda t: str(t).removeprefix("torch.")
)
def test_tensors_of_any_type_and_no_dimension_are_compared(tmp_path: Path, dtype: torch.dtype) -> None:
    found = compared(tmp_path, torch.tensor(0.0).to(dtype), torch.tensor(1.0).to(dtype))
    assert (found.differing, found.largest) == (1, 1.0)


def test_elements_of_a_type_that_torch_does_not_convert_are_counted(tmp_path: Path) -> None:
    a, b = (torch.tensor(x, dtype=torch.uint8).view(torch.float4_e2m1fn_x2) for x in ([0, 1, 2], [0, 3, 2]))
    found = compared(tmp_path, a, b)
    assert (found.differing, found.largest) == (1, None)
    assert root_in_order(tmp_path / "a", ["t"], [spec_of(torch.zeros(3))]) is None


def test_a_difference_too_large_for_a_number_is_none_and_is_counted(tmp_path: Path) -> None:
    most = torch.finfo(torch.float64).max
    found = compared(tmp_path, torch.tensor([most, 1.0]).double(), torch.tensor([-most, 3.0]).double())
    assert found.differing is not None and found.differing >= 1
    json.dumps(found.document(), allow_nan=False)


def test_names_types_and_shapes_that_differ_are_told_and_not_compared(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(2, 3), "y": torch.zeros(2), "z": torch.zeros(1)}, tmp_path / "a")
    save_file({"x": torch.zeros(3, 2), "y": torch.zeros(2).int(), "w": torch.zeros(1)}, tmp_path / "b")
    w, x, y, z = differences(tmp_path / "a", tmp_path / "b")
    assert (w.a, z.b) == (None, None) and not any(one.equal for one in (w, x, y, z))
    assert (x.a, x.b, x.differing) == (TensorForm("float32", (2, 3)), TensorForm("float32", (3, 2)), None)
    assert y.b is not None and y.b.dtype == "int32"


def test_a_long_tensor_is_compared_piece_by_piece(tmp_path: Path) -> None:
    a = torch.arange(2 * CHUNK + 3, dtype=torch.float32)
    b = a.clone()
    b[[0, CHUNK, 2 * CHUNK + 2]] += torch.tensor([1.0, 5.0, 2.0])
    found = compared(tmp_path, a, b)
    assert (found.differing, found.largest) == (3, 5.0)


def test_the_root_of_a_file_is_that_of_its_tensors_in_the_run_s_order(tmp_path: Path) -> None:
    tensors = {"z": torch.ones(3), "a": torch.arange(4, dtype=torch.int32)}
    save_file(tensors | {"more": torch.zeros(1)}, tmp_path / "a", {"assay_root": "ab"})
    specs = [spec_of(t) for t in tensors.values()]
    (data,) = to_lists_of_bytes([list(tensors.values())])
    assert root_in_order(tmp_path / "a", list(tensors), specs) == root_of_list(specs, data)
    assert root_in_order(tmp_path / "a", ["z", "missing"], specs) is None
    assert root_in_order(tmp_path / "a", ["a", "z"], specs) is None
    assert says_root(tmp_path / "a") == "0xab" and len(sha256_of(tmp_path / "a")) == 64


@pytest.mark.parametrize(
    ("of_the_run", "held", "same"),
    [
        (torch.tensor([7], dtype=torch.int32), torch.tensor([7]), True),
        (torch.tensor([7], dtype=torch.int32), torch.tensor([7 + (1 << 32)]), False),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64), True),
        (torch.tensor([1.0]), torch.tensor([1.0 + 2.0**-40], dtype=torch.float64), False),
    ],
    ids=["a-wide-count", "one-that-wraps", "a-wide-number", "one-that-is-rounded"],
)
def test_a_root_is_said_of_the_values_that_a_file_holds(
    tmp_path: Path, of_the_run: Tensor, held: Tensor, same: bool
) -> None:
    save_file({"t": held}, tmp_path / "a")
    found = root_in_order(tmp_path / "a", ["t"], [spec_of(of_the_run)])
    (data,) = to_lists_of_bytes([[of_the_run]])
    assert found == (root_of_list([spec_of(of_the_run)], data) if same else None)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff" * 64, (1 << 62).to_bytes(8, "little"), b"\x02" + bytes(7) + b"{]", b"\x08" + bytes(7) + b"[" * 8],
    ids=["empty", "noise", "huge-header", "no-json", "brackets"],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    save_file({"t": torch.zeros(1)}, tmp_path / "a")
    (tmp_path / "b").write_bytes(data)
    with pytest.raises(ConfigError) as refused:
        list(differences(tmp_path / "a", tmp_path / "b"))
    assert refused.value.code == "FileUnreadable"


def test_the_command_says_what_differs_and_ends_with_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, last in (("a", 2.0), ("b", 2.5)):
        (tmp_path / name).mkdir()
        odd = "evil\x1b[2J\u202e"
        save_file({"t": torch.tensor([1.0, last]), odd: torch.tensor([last])}, tmp_path / name / "model.safetensors")
    sides = (str(tmp_path / "a"), str(tmp_path / "b" / "model.safetensors"))
    same = assay(monkeypatch, "model", "diff", sides[0], sides[0], "--json")
    assert same.exit_code == ExitCode.OK and json.loads(same.stdout)["equal"]
    found = assay(monkeypatch, "model", "diff", *sides, "--json")
    document = json.loads(found.stdout)
    assert found.exit_code == ExitCode.NO
    assert (document["differing_tensors"], document["differing_elements"]) == (2, 2)
    assert document["a"]["root"] is None and document["a"]["sha256"] != document["b"]["sha256"]
    plain = assay(monkeypatch, "model", "diff", *sides)
    assert plain.exit_code == ExitCode.NO and "2 of 2 tensors differ." in plain.stdout
    assert "\x1b" not in plain.stdout and "\u202e" not in plain.stdout
    # A number is a generation, and of no run there is none.
    unnamed = assay(monkeypatch, "model", "diff", sides[0], "3")
    assert isinstance(unnamed.exception, ConfigError) and unnamed.exception.code == "RunMissing"
