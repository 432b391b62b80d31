"""Layers beyond products: convolutions, pooling, norms, recurrence, selection; values and gradients as in PyTorch.

Every case is also computed by the reference, node by node, bit by bit.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.capture import CannotLowerError
from assay.engine.compiler.lowering.registry import FIXED22
from assay.engine.runtime.executor import Executor
from assay.protocol.program.nodes import Dot, Map
from tests.harness.engine.helpers import captured, differing_nodes, relative


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def with_gradients(function):
    """The function's value, and the gradients of a weighted sum of it for every argument."""

    def both(*tensors: Tensor) -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in tensors]
        out = function(*leaves)
        weights = torch.linspace(-1, 1, out.numel()).reshape(out.shape)
        return (out, *torch.autograd.grad((out * weights).sum(), leaves))

    return both


def assert_computes(function, *tensors: Tensor, limit: float = 1e-5) -> None:
    """The captured function equals PyTorch's up to rounding, and the reference on every bit."""
    program = captured(function, *tensors, precision=FIXED22).program
    assert differing_nodes(program, [tensors]) == []
    for ours, theirs in zip(Executor(program).run([tensors])[0], function(*tensors), strict=True):
        if theirs.is_floating_point():
            assert relative(ours, theirs.detach()) < limit
        else:
            assert torch.equal(ours.long(), theirs.long())


X = drawn(2, 4, 7, 6)
M = drawn(4, 6)

CONVOLUTIONS = [
    {},
    {"padding": 1},
    {"stride": 2, "padding": 1},
    {"stride": 3, "padding": 2},
    {"dilation": 2},
    {"dilation": 2, "stride": 2, "padding": 2},
    {"groups": 2, "stride": 2, "padding": 1},
    {"groups": 4, "padding": 1},
    {"stride": (1, 2), "padding": (0, 1)},
]


@pytest.mark.parametrize("options", CONVOLUTIONS, ids=str)
def test_convolutions_and_their_gradients(options: dict):
    w = drawn(4, 4 // options.get("groups", 1), 3, 3, seed=1)
    assert_computes(with_gradients(lambda x, w, b: F.conv2d(x, w, b, **options)), X, w, drawn(4))


def test_the_gradient_of_a_convolution_under_windows_that_are_taken_apart_and_joined():
    """As hierarchical vision transformers do: its position in the batch alone is then seven axes."""

    def function(x: Tensor, w: Tensor) -> Tensor:
        y = F.layer_norm(F.conv2d(x, w, stride=2).permute(0, 2, 3, 1), (8,))  # batch, 8, 8, channels
        parts = y.view(4, 2, 4, 2, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 8) * 2
        y = y + parts.view(4, 2, 2, 4, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(4, 8, 8, 8)
        quarters = [y[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return F.layer_norm(torch.cat(quarters, -1), (32,))

    assert_computes(with_gradients(function), drawn(4, 3, 16, 16), drawn(8, 3, 2, 2), limit=1e-4)


@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"stride": 2, "groups": 2}, {"dilation": 2}],
    ids=str,
)
def test_transposed_convolutions_and_their_gradients(options: dict):
    w = drawn(4, 6 // options.get("groups", 1), 3, 3, seed=1)
    assert_computes(with_gradients(lambda x, w: F.conv_transpose2d(x, w, **options)), X, w)


def test_convolutions_in_one_and_three_dimensions():
    assert_computes(
        with_gradients(lambda x, w: F.conv1d(x, w, padding=2, stride=2)), drawn(2, 3, 9), drawn(4, 3, 3, seed=1)
    )
    assert_computes(
        with_gradients(lambda x, w: F.conv3d(x, w, padding=1)), drawn(1, 2, 3, 3, 2), drawn(2, 2, 2, 2, 2, seed=1)
    )


def test_patches_are_read_in_place_and_only_padding_is_copied():
    w = drawn(5, 4, 3, 3, seed=1)
    plain = captured(lambda x, w: (F.conv2d(x, w),), X, w).program
    padded = captured(lambda x, w: (F.conv2d(x, w, padding=1),), X, w).program
    kinds = [n.family.name for n in plain.nodes]
    assert kinds.count("DOT") == 1
    extra = [n for n in padded.nodes if isinstance(n, Map) and n.spec.numel == 2 * 4 * 9 * 8]
    assert len(extra) == 1
    assert max(n.spec.numel for n in padded.nodes) == 2 * 4 * 9 * 8, "no tensor of patches"


def test_a_strided_gradient_multiplies_no_inserted_zeros():
    w = drawn(4, 4, 2, 2, seed=1)
    program = captured(with_gradients(lambda x, w: F.conv2d(x, w, stride=2)), drawn(2, 4, 8, 8), w).program
    forward, *backward = [n.spec.numel * n.terms for n in program.nodes if isinstance(n, Dot)]
    assert all(work == forward for work in backward)


POOLS = {
    "max": lambda x: F.max_pool2d(x, 2),
    "max overlapping": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max dilated": lambda x: F.max_pool2d(x, 3, 1, dilation=2),
    "max up to the border": lambda x: F.max_pool2d(x, (3, 2), 2, ceil_mode=True),
    "max of volumes": lambda x: F.max_pool3d(x[:, None], 2),
    "average": lambda x: F.avg_pool2d(x, 2),
    "average overlapping": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "average without padding": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "average up to the border": lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True, divisor_override=5),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (1, 3)),
    "of lines": lambda x: F.avg_pool1d(F.max_pool1d(x[0], 2), 2),
    "enlarged": lambda x: F.interpolate(x, scale_factor=2),
    "shuffled": lambda x: F.pixel_shuffle(x, 2),
}


@pytest.mark.gate_takes(4)
@pytest.mark.parametrize("name", POOLS)
def test_pooling_and_its_gradients(name: str):
    assert_computes(with_gradients(POOLS[name]), X)


def test_maxima_say_where_they_stand_and_ties_go_to_the_first():
    x = X.round()
    assert_computes(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x)
    assert_computes(with_gradients(lambda x: F.max_pool2d(x, 3, 2, 1)), x)


NORMS = {
    "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    "batch in evaluation": lambda x, w, b: F.batch_norm(x, torch.full((4,), 0.3), torch.full((4,), 2.0), w, b),
    "group": lambda x, w, b: F.group_norm(x, 2, w, b),
    "instance": lambda x, w, b: F.instance_norm(x) * w.reshape(4, 1, 1) + b.reshape(4, 1, 1),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_of_channels_and_their_gradients(name: str):
    assert_computes(with_gradients(NORMS[name]), X, drawn(4), drawn(4, seed=1))


MODULES = {
    "gru": lambda: (nn.GRU(3, 4, batch_first=True), drawn(2, 3, 3)),
    "lstm": lambda: (nn.LSTM(3, 4, bidirectional=True), drawn(3, 2, 3)),
    "lstm cell": lambda: (nn.LSTMCell(3, 4), drawn(2, 3)),
    "rnn": lambda: (nn.RNN(3, 4), drawn(3, 2, 3)),
    "encoder layer": lambda: (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), drawn(2, 4, 8)),
    "weight norm": lambda: (torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), drawn(2, 4)),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.gate_takes(1)
def test_stock_modules_and_their_gradients(name: str):
    torch.manual_seed(0)
    module, x = MODULES[name]()
    names = [n for n, _ in module.named_parameters()]

    def run(x: Tensor, *parameters: Tensor) -> Tensor:
        out = torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), (x,))
        return out[0] if isinstance(out, tuple) else out

    assert_computes(with_gradients(run), x, *[p.detach() for p in module.parameters()])


SELECTIONS = {
    "topk": lambda x: (*torch.topk(x, 3, 1), *torch.topk(x, 2, 0, largest=False)),
    "sort": lambda x: (*x.sort(1), x.argsort(0, descending=True)),
    "extremes": lambda x: (*x.max(1), *x.min(0, keepdim=True), x.argmax(), x.argmin(0), x.max(), x.min()),
    "gradient of topk": with_gradients(lambda x: torch.topk(x, 3, 1)[0]),
    "gradient of sort": with_gradients(lambda x: torch.sort(x, 0)[0]),
    "gradient of max": with_gradients(lambda x: x.max(1)[0]),
    "mask of topk": lambda x: (torch.full_like(x, 9.0).scatter(1, torch.topk(x, 2, 1)[1], 1.0),),
    "gradient of a table of one row": with_gradients(lambda x: F.embedding(torch.zeros(3, dtype=torch.int64), x[:1])),
    "sums into one row": with_gradients(lambda x: torch.zeros(1, 6).index_add(0, torch.zeros(4, dtype=torch.int64), x)),
    "several indices": lambda x: (x[torch.arange(4), torch.tensor([3, -1, 2, 2])], x[[1, 0], [0, 5]]),
    "gradient of several indices": with_gradients(lambda x: x[torch.tensor([1, 1, 0]), torch.tensor([2, 2, 3])]),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections(name: str):
    assert_computes(SELECTIONS[name], M)


def test_the_first_of_equals_is_selected():
    x = torch.tensor([[1.0, 2.0, 2.0, 1.0], [0.0, -0.0, 0.0, -1.0]])
    program = captured(lambda x: (*torch.topk(x, 2, 1), x.argmax(1)), x).program
    values, places, top = Executor(program).run([[x]])[0]
    assert values.tolist() == [[2.0, 2.0], [0.0, 0.0]]
    assert places.tolist() == [[1, 2], [0, 1]]
    assert top.tolist() == [1, 0]


ACTIVATIONS = [
    *(F.elu, F.selu, F.celu, F.softplus, F.hardswish, F.hardsigmoid, F.softsign, F.logsigmoid, F.mish),
    *(F.tanhshrink, F.softshrink, F.leaky_relu, F.hardshrink, F.glu),
]


@pytest.mark.gate_takes(4)
@pytest.mark.parametrize("function", ACTIVATIONS, ids=lambda f: f.__name__)
def test_activations_and_their_gradients(function):
    assert_computes(with_gradients(function), M)


def test_small_exponentials_keep_their_digits():
    x = torch.tensor([0.0, 1e-20, -1e-6, 1e-3, 3.0, -30.0, -200.0])
    (ours,) = Executor(captured(lambda x: (torch.expm1(x),), x).program).run([[x]])[0]
    torch.testing.assert_close(ours, torch.expm1(x.double()).float(), rtol=5e-7, atol=0.0)


LOSSES = {
    "logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.full((4, 6), 0.3)),
    "huber": lambda x: F.huber_loss(x, torch.ones(4, 6)) + F.smooth_l1_loss(x, torch.ones(4, 6)),
    "divergence": lambda x: F.kl_div(F.log_softmax(x, 1), torch.full((4, 6), 1 / 6), reduction="batchmean"),
    "similarity": lambda x: F.cosine_similarity(x, x.flip(0)).sum() + torch.logsumexp(x, 1).sum(),
    "margin": lambda x: F.margin_ranking_loss(x[0], x[1], torch.ones(6)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients(name: str):
    assert_computes(with_gradients(lambda x: LOSSES[name](x)[None]), M)


def test_shifts_of_integers():
    i = torch.tensor([1, -2, 2**30, -(2**31)], dtype=torch.int32)
    assert_computes(lambda i: (i >> 3, i << 2, i >> 31), i)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: (x[:, torch.tensor([0, 1]), :, torch.tensor([1, 2])],), "not neighbours"),
        (lambda x: (x[x[:, 0, 0, 0] > 0],), "by a mask"),
        (lambda x: (F.conv3d(x[..., None].expand(2, 4, 7, 6, 3), x.view(4, 2, 7, 3, 2)[:, :, :2], groups=2),), "8 dim"),
    ],
)
def test_what_has_no_form_is_refused_with_a_reason(function, words: str):
    with pytest.raises(CannotLowerError, match=words):
        captured(function, X)


@given(
    size=st.integers(1, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 4),
    padding=st.integers(0, 3),
    dilation=st.integers(1, 3),
    groups=st.sampled_from([1, 2]),
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_convolutions_of_drawn_geometry(size: int, kernel: int, stride: int, padding: int, dilation: int, groups: int):
    assume(size + 2 * padding >= dilation * (kernel - 1) + 1)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, w = drawn(2, 2, size, 3), drawn(4, 2 // groups, kernel, 1, seed=1)
    options = {n: v if n == "groups" else (v, 0 if n == "padding" else 1) for n, v in options.items()}
    function = with_gradients(lambda x, w: F.conv2d(x, w, **options))
    program = captured(function, x, w, precision=FIXED22).program
    for ours, theirs in zip(Executor(program).run([[x, w]])[0], function(x, w), strict=True):
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-4, atol=1e-4)


@given(
    size=st.integers(1, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 4),
    padding=st.integers(0, 2),
    ceil_mode=st.booleans(),
    kind=st.sampled_from(["max", "average", "bare average"]),
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_pools_of_drawn_geometry(size: int, kernel: int, stride: int, padding: int, ceil_mode: bool, kind: str):
    assume(2 * padding <= kernel <= size + 2 * padding)
    x = drawn(2, 1, size, 2)
    window = ((kernel, 1), (stride, 1), (padding, 0))
    pool = {
        "max": lambda x: F.max_pool2d(x, *window, ceil_mode=ceil_mode),
        "average": lambda x: F.avg_pool2d(x, *window, ceil_mode),
        "bare average": lambda x: F.avg_pool2d(x, *window, ceil_mode, count_include_pad=False),
    }[kind]
    function = with_gradients(pool)
    program = captured(function, x, precision=FIXED22).program
    for ours, theirs in zip(Executor(program).run([[x]])[0], function(x), strict=True):
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)


SUMS = {
    "cumulative": with_gradients(lambda x: x.cumsum(1)),
    "cumulative over rows": with_gradients(lambda x: x.cumsum(0)),
    "cumulative counts": lambda x: ((x > 0).cumsum(1), (x > 0).long().cumsum(0), torch.cumsum(x * 10, 1, dtype=int)),
    "integers": lambda x: ((x * 1e8).int().sum(1), (x * 1e8).int().sum(), (x > 0).sum(), (x > 0).long().sum(0)),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_prefixes_and_of_integers(name: str):
    assert_computes(SUMS[name], M)


@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.75, 1.5, 2.25, -0.75, -1.5, 3, -2, 0, 1])
def test_powers_by_quarters(exponent: float):
    assert_computes(
        with_gradients(lambda x: x**exponent) if exponent not in (0,) else lambda x: (x**exponent,), M.abs()
    )


def test_powers_of_a_number():
    assert_computes(lambda x: (2.0**x, 10000 ** (x / 6)), M)
