"""Published objects are what their names promise, whoever put bytes under the name."""

from pathlib import Path

import pytest

from assay.ledger.objects import Objects, root_of_list
from assay.ledger.store import ObjectMismatch, ObjectMissing, open_store
from assay.protocol.tensors import TensorSpec
from assay.protocol.types import Digest, DType

SPECS = [TensorSpec(DType.F32, (2, 3)), TensorSpec(DType.U8, ()), TensorSpec(DType.BOOL, (0,))]
TENSORS = (bytes(range(24)), b"\x05", b"")


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(open_store(tmp_path))


def test_a_list_comes_back_bit_for_bit(objects: Objects) -> None:
    assert objects.list(objects.put_list(SPECS, TENSORS), SPECS) == TENSORS


def test_an_all_zero_list_needs_no_store(objects: Objects) -> None:
    zeros = tuple(spec.zeros() for spec in SPECS)
    assert objects.list(root_of_list(SPECS, zeros), SPECS) == zeros


def test_a_state_names_its_lists_and_a_tensor_its_bytes(objects: Objects) -> None:
    roots = (Digest(b"\x01" * 32), Digest(b"\x02" * 32))
    assert objects.state(objects.put_state(roots)) == roots
    spec = TensorSpec(DType.U8, (1500,))
    data = bytes(i % 251 for i in range(1500))
    assert objects.tensor(objects.put_tensor(spec, data), spec) == data


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40, b"[" * 3000, bytes(2000)])
def test_other_bytes_under_the_name_are_passed_over_and_never_returned(objects: Objects, damage: bytes) -> None:
    root = root_of_list(SPECS, TENSORS)
    objects.store.put(damage, f"lists/{root.hex()}")
    with pytest.raises(ObjectMismatch):
        objects.list(root, SPECS)
    objects.put_list(SPECS, TENSORS)
    assert objects.list(root, SPECS) == TENSORS


def test_a_list_of_other_values_under_the_name_is_passed_over(objects: Objects) -> None:
    root = root_of_list(SPECS, TENSORS)
    forged = objects.store.get(
        objects.store.list(f"lists/{objects.put_list(SPECS, (bytes(24), b'1', b'')).hex()}")[0][1], 1 << 20
    )
    objects.store.put(forged, f"lists/{root.hex()}")
    with pytest.raises(ObjectMismatch):
        objects.list(root, SPECS)


def test_what_nobody_published_is_missing(objects: Objects) -> None:
    with pytest.raises(ObjectMissing):
        objects.list(root_of_list(SPECS, TENSORS), SPECS)
