"""16-bit numbers in u16 slots: every one is widened as PyTorch does it, and every f32 rounded to the one it names."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from assay.engine import ops
from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.values.dtypes import to_bytes
from tests.harness.engine.helpers import captured, differing_nodes

TYPES = (torch.bfloat16, torch.float16)
ALL = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16)


def there_and_back(dtype: torch.dtype):
    def function(bits: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        wide = ops.floats_of(bits, dtype)
        return wide.float(), ops.bits_of(x, dtype), ops.bits_of(wide, dtype)

    return function


def around(dtype: torch.dtype) -> Tensor:
    """Each 16-bit number, each middle of two, the f32 numbers beside them, and odd ones of all sizes."""
    ends = torch.tensor([float("inf"), float("-inf")])
    here, following = ALL.view(dtype).float(), (ALL.int() + 1).to(torch.uint16).view(dtype).float()
    middle = ((here.double() + following.double()) / 2).float()
    found = [t for x in (here, middle) for t in (x, *(torch.nextafter(x, end) for end in ends))]
    words = torch.randint(-(2**31), 2**31, (1 << 16,), generator=torch.Generator().manual_seed(1), dtype=torch.int64)
    limits = torch.tensor([65504.0, 65519.99609375, 65520.0, -65520.0, 0.0, -0.0, float("nan")])
    return torch.cat([*found, words.to(torch.int32).view(torch.float32), limits])


@pytest.mark.parametrize("variant", [KernelVariant.STOCK, KernelVariant.FUSED])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_number_is_widened_and_rounded_as_pytorch_does_it(dtype: torch.dtype, variant: KernelVariant):
    function, x = there_and_back(dtype), around(dtype)
    program = capture(lambda part: [list(function(*part))], [[ALL, x]]).program
    wide, near, back = Executor(program, variant=variant).run([[ALL, x]])[0]
    expected = torch.where(x.isnan(), float("nan"), x.to(dtype))
    assert to_bytes(wide) == to_bytes(ALL.view(dtype).float())
    assert torch.equal(near.int(), expected.view(torch.uint16).int())
    numbers = ~ALL.view(dtype).isnan()
    assert torch.equal(back.int()[numbers], ALL.int()[numbers])
    assert bool((back.int()[~numbers] == int(torch.tensor(float("nan"), dtype=dtype).view(torch.int16))).all())


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_the_reference_agrees_at_the_limits(dtype: torch.dtype):
    bits = torch.tensor([0, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x7C01, 0x7F80, 0x7FC0, 0x8001, 0xFFFF], dtype=torch.int32)
    x = torch.cat([around(dtype)[-17:], torch.tensor([2.0**-14, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 2.0**-133])])
    inputs = [bits.to(torch.uint16), x]
    program = captured(there_and_back(dtype), *inputs).program
    assert not differing_nodes(program, [inputs])
