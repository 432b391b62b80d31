"""Captured functions compute what PyTorch does, bit-equal in both executors."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine import ops
from assay.engine.compiler.capture import capture
from assay.engine.compiler.ir.fusion import MAX_FUSED_OPERANDS
from assay.engine.compiler.lowering.registry import FIXED8, FIXED22
from assay.engine.runtime.executor import Executor
from assay.protocol.program.nodes import Const, Dot, Gather, Map, Output, Random, Rank
from assay.protocol.program.wellformed import violations
from tests.harness.engine.helpers import captured, differing_nodes, relative, run_captured


def _x(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X, Y, M = _x(4, 6), _x(4, 6, seed=1), _x(6, 5, seed=2)
I = torch.tensor([3, 0, 2, 2], dtype=torch.int32)  # noqa: E741

OPERATIONS = {
    "add": lambda: (lambda x, y: (x + y, x - y, x * y, x / y, 2.0 - x, x.add(y, alpha=3)), X, Y),
    "scalars": lambda: (lambda x: (x + 1, x / 3.0, 1 / x, x**3, x**-2, -x, x.abs()), X),
    "functions": lambda: (
        lambda x: (
            x.exp(),
            x.abs().log(),
            x.tanh(),
            x.sigmoid(),
            x.erf(),
            x.sin(),
            x.cos(),
            x.abs().sqrt(),
            x.abs().rsqrt(),
        ),
        X,
    ),
    "activations": lambda: (
        lambda x: (F.relu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.leaky_relu(x)),
        X,
    ),
    "more activations": lambda: (
        lambda x: (F.softplus(x), F.hardtanh(x), F.relu6(x), F.mish(x), torch.log1p(x.abs() * 1e-4)),
        X,
    ),
    "rounding": lambda: (lambda x: (x.floor(), x.ceil(), x.round(), x.trunc(), x.sign()), X * 3),
    "comparisons": lambda: (lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y, ~(x < 0) & (y > 0)), X, Y),
    "selection": lambda: (
        lambda x, y: (torch.where(x > y, x, y), torch.maximum(x, y), x.clamp(-0.5, 0.5), x.masked_fill(y > 0, 2.0)),
        X,
        Y,
    ),
    "reductions": lambda: (lambda x: (x.sum(), x.sum(0), x.mean(1), x.amax(1), x.amin(0), x.var(1), (x > 0).sum()), X),
    "more reductions": lambda: (
        lambda x: (x.norm(), (x > 0).any(), x.mean((0, 1)), x.std(0), x.sum(1, keepdim=True)),
        X,
    ),
    "products": lambda: (lambda x, m: (x @ m, x.t() @ x, x[0] @ m, (x @ m).t(), torch.einsum("ij,jk->ki", x, m)), X, M),
    "batched products": lambda: (
        lambda a, b: (a @ b, torch.einsum("bij,bjk->bik", a, b), a.transpose(1, 2) @ a),
        _x(2, 3, 4),
        _x(2, 4, 5),
    ),
    "linear": lambda: (
        lambda x, w, b: (F.linear(x, w, b), torch.addmm(b, x, w.t(), alpha=2.0, beta=0.5)),
        X,
        M.t().contiguous(),
        _x(5),
    ),
    "reshapes": lambda: (
        lambda x: (
            x.view(2, 2, 3, 2).transpose(1, 2).reshape(4, 6),
            x.t().reshape(3, 8),
            x.flatten(),
            x[1:3, ::2],
            x[:, -1],
            x.unsqueeze(1).expand(4, 2, 6),
            x.flip(0),
        ),
        X,
    ),
    "joins": lambda: (
        lambda x, y: (
            torch.cat([x, y], 1),
            torch.stack([x, y, x]),
            F.pad(x, (1, 2, 0, 1), value=3.0),
            x.roll(1, 0),
            torch.cat([x, -y * 0.0]),
        ),
        X,
        Y,
    ),
    "splits": lambda: (lambda x: (*x.split([1, 2, 3], 1), *x.chunk(2), *x.unbind(1)), X),
    "writes": lambda: (
        lambda x, y: (x.slice_scatter(y[:2], 0, 1, 3), x.select_scatter(y[0], 0, 2), _in_place(x)),
        X,
        Y,
    ),
    "gathers": lambda: (
        lambda x, i: (
            x[i],
            F.embedding(i, x),
            x.gather(0, i.long()[:, None].expand(4, 6)),
            x.index_select(1, i),
            ops.take(x, i + 2),
            x[:, i],
        ),
        X,
        I,
    ),
    "scatters": lambda: (
        lambda x, i: (
            torch.zeros(5, 6).index_add(0, i, x),
            torch.zeros(4, 6).scatter_add(1, i.long()[:, None].expand(4, 6), x),
            x.index_put([i], x, accumulate=True),
            F.one_hot(i.long(), 5).float(),
        ),
        X,
        I,
    ),
    "softmax": lambda: (
        lambda x, y: (F.softmax(x, 1), F.log_softmax(x, 0), F.softmax(x, 1) @ y.t(), y.t() @ F.softmax(x, 0)),
        X,
        Y,
    ),
    "losses": lambda: (
        lambda x, y, i: (
            F.cross_entropy(x, i.long()),
            F.mse_loss(x, y),
            F.cross_entropy(x, i.long(), ignore_index=2),
            F.l1_loss(x, y),
            F.cross_entropy(x, i.long(), label_smoothing=0.1),
        ),
        X,
        Y,
        I,
    ),
    "norms": lambda: (
        lambda x, y: (
            F.layer_norm(x, (6,), y[0], y[1]),
            F.layer_norm(x, (4, 6)),
            F.rms_norm(x, (6,), y[2]),
            F.normalize(x, dim=1),
        ),
        X,
        Y,
    ),
    "attention": lambda: (
        lambda q, k, v: (
            F.scaled_dot_product_attention(q, k, v, is_causal=True),
            F.scaled_dot_product_attention(q, k, v),
        ),
        _x(1, 2, 5, 4),
        _x(1, 2, 5, 4, seed=1),
        _x(1, 2, 5, 4, seed=2),
    ),
    "integers": lambda: (
        lambda i: (i + 3, i * i, i & 1, i | 4, i ^ 2, i.float() / 2, i.clamp(1, 2), i.long() + 1 == 4),
        I,
    ),
    "masks": lambda: (
        lambda x: (x.tril(), x.masked_fill(torch.ones(4, 6).triu(1).bool(), -1.0), torch.arange(6) * x),
        X,
    ),
}


def _in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y += 1.0
    y[0] = 5.0
    y[1:3, 2].mul_(2.0)
    return y


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.gate_takes(10)
def test_operations_compute_what_pytorch_computes(name: str):
    function, *tensors = OPERATIONS[name]()
    program = captured(function, *tensors, precision=FIXED22).program
    assert differing_nodes(program, [tensors]) == []
    for ours, theirs in zip(Executor(program).run([tensors])[0], function(*tensors), strict=True):
        if ours.dtype is torch.float32:
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5, equal_nan=True)
        else:
            assert torch.equal(ours.long(), theirs.long())


def test_a_program_does_not_depend_on_the_values_it_was_captured_with():
    function = lambda x, m: (F.softmax(x @ m, 1),)  # noqa: E731
    assert captured(function, X, M).program.root == captured(function, Y, M * 2).program.root
    assert captured(function, X, M).program.root != captured(function, X[:2], M).program.root


def test_one_tensor_given_twice_is_two_inputs():
    program = captured(lambda a, b: (a - b,), X, X).program
    assert Executor(program).run([[X, Y]])[0][0].equal(X - Y)


def test_maps_stay_within_the_limits_of_the_contract():
    def long_chain(*xs: Tensor) -> tuple[Tensor, ...]:
        total = xs[0]
        for x in xs[1:]:
            total = torch.tanh(total * x) + x.exp()
        return (total,)

    tensors = [_x(3, seed=k) for k in range(8)]
    program = captured(long_chain, *tensors).program
    assert violations(program) == ()
    maps = [n for n in program.nodes if isinstance(n, Map)]
    assert len(maps) > 1
    assert all(len(n.operands) <= MAX_FUSED_OPERANDS for n in maps)
    torch.testing.assert_close(Executor(program).run([tensors])[0][0], long_chain(*tensors)[0])


def test_a_chain_of_elementwise_operations_is_one_map():
    program = captured(lambda x, y: (F.relu(x * 2.0 + y).exp() - 1.0,), X, Y).program
    assert sum(isinstance(n, Map) for n in program.nodes) == 1


def test_equal_expressions_are_computed_once_and_dead_ones_not_at_all():
    def f(x: Tensor, m: Tensor) -> tuple[Tensor, ...]:
        x.sum()
        return x @ m, (x @ m) * 2.0

    program = captured(f, X, M).program
    assert sum(isinstance(n, Dot) for n in program.nodes) == 1
    assert len(program.nodes) == 2 + 2 + 1 + 1 + 2


def test_reshapes_make_no_nodes():
    def heads(x: Tensor) -> tuple[Tensor, ...]:
        q = x.view(2, 3, 2, 2).transpose(1, 2)
        return ((q @ q.transpose(2, 3)).transpose(1, 2).reshape(6, 6).view(2, 3, 2, 3) * 2.0,)

    program = captured(heads, _x(2, 12)).program
    kinds = [n.family.name for n in program.nodes]
    assert kinds.count("DOT") == 1
    assert kinds.count("MAP") == 1


def test_tiers_set_the_precision_and_sensitive_operands_get_more():
    def f(x: Tensor, m: Tensor) -> tuple[Tensor, ...]:
        return x @ m, F.softmax(x, 1).t() @ x

    plain, weighted = (n for n in captured(f, X, M).program.nodes if isinstance(n, Dot))
    assert (plain.precision_a, plain.precision_b) == (14, 14)
    assert (weighted.precision_a, weighted.precision_b) == (22, 14)
    plain, weighted = (n for n in captured(f, X, M, precision=FIXED8).program.nodes if isinstance(n, Dot))
    assert (plain.precision_a, plain.precision_b) == (8, 8)
    assert (weighted.precision_a, weighted.precision_b) == (22, 8)


def test_gradients_of_softmax_are_sensitive():
    def f(x: Tensor, m: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        w = m.detach().requires_grad_()
        loss = F.cross_entropy(x @ w, i.long())
        return torch.autograd.grad(loss, (w,))

    bits = [(n.precision_a, n.precision_b) for n in captured(f, X, M, I).program.nodes if isinstance(n, Dot)]
    assert sorted(bits) in ([(14, 14), (14, 22)], [(14, 14), (22, 14)])


def test_random_words_and_gathers_come_from_the_markers():
    def f(key: Tensor, step: Tensor, data: Tensor) -> tuple[Tensor, ...]:
        at = ops.mulhi_u32(ops.random_words(key, step, 7, 5), torch.tensor(20, dtype=torch.int32))
        return (ops.take(data, at).to(torch.int32),)

    tensors = [
        torch.tensor([1, -2], dtype=torch.int32),
        torch.tensor([3, 0], dtype=torch.int32),
        torch.arange(20).to(torch.uint8),
    ]
    program = captured(f, *tensors).program
    assert sum(isinstance(n, Random) for n in program.nodes) == 1
    assert sum(isinstance(n, Gather) for n in program.nodes) == 1
    assert differing_nodes(program, [tensors]) == []
    assert Executor(program).run([tensors])[0][0].equal(f(*tensors)[0])


@pytest.mark.parametrize("words", [[0, 0], [5, 5], [1, -2]])
def test_a_constant_key_draws_as_any_other(words: list[int]):
    key, step = torch.tensor(words, dtype=torch.int32), torch.tensor([3, 0], dtype=torch.int32)
    assert run_captured(lambda s: (ops.random_words(key, s, 7, 5),), step)[0].equal(ops.random_words(key, step, 7, 5))


def test_a_computed_key_that_is_also_read_elsewhere_draws_as_any_other():
    def f(x: Tensor) -> tuple[Tensor, ...]:
        key = torch.stack([x[0] & 0xFFFF, x[0] >> 16])
        return ops.random_words(key, torch.zeros(2, dtype=torch.int32), 7, 5), key + 1

    x = torch.tensor([123456789], dtype=torch.int32)
    assert all(a.equal(b) for a, b in zip(run_captured(f, x), f(x), strict=True))


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]])
def test_signs_of_constant_zeros_are_kept(zeros: list[float]):
    held = torch.tensor(zeros)
    assert run_captured(lambda x: (x / held,), torch.ones(2))[0].equal(1.0 / held)


def test_a_value_that_is_passed_through_is_the_input_itself():
    program = captured(lambda x, y: (x, y + 1.0, x), X, Y).program
    outputs = [n for n in program.nodes if isinstance(n, Output)]
    assert [n.node for n in outputs] == [0, 2, 0]


def test_constants_of_the_module_travel_with_the_program():
    program = captured(lambda x: (x + torch.arange(6.0),), X).program
    assert [n.spec.dims for n in program.nodes if isinstance(n, Const)] == [(6,)]


@pytest.mark.parametrize("shape", [(7,), (2, 5), (2, 3, 4)])
def test_ranks_are_those_of_a_stable_descending_sort(shape: tuple[int, ...]):
    x = _x(*shape)
    x.view(-1)[[0, 3]] = 0.0
    x.view(-1)[1] = -0.0
    x.view(-1)[2] = float("nan")
    program = captured(lambda t: (ops.rank(t), ops.rank(t.transpose(0, -1))), x).program
    assert any(isinstance(n, Rank) for n in program.nodes)
    assert differing_nodes(program, [[x]]) == []
    for ours, theirs in zip(Executor(program).run([[x]])[0], (ops.rank(x), ops.rank(x.transpose(0, -1))), strict=True):
        assert torch.equal(ours, theirs)


def test_the_largest_elements_can_be_kept_by_their_rank():
    program = captured(lambda x: (torch.where(ops.rank(x) < 2, x, 0.0),), X).program
    (ours,) = Executor(program).run([[X]])[0]
    assert torch.equal(ours.ne(0).sum(1), torch.full((4,), 2))
    assert torch.equal(ours.amax(1), X.amax(1))


def test_several_lists_keep_their_layout():
    program = capture(lambda a, b: ([a[0] + b[0]], [], [b[1], a[0]]), [[X], [Y, M]]).program
    assert program.inputs == (1, 2)
    assert program.outputs == (1, 0, 2)


def test_modules_with_buffers_and_ordinary_layers_are_captured():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Softmax(dim=1))
    parameters = [p.detach() for p in module.parameters()]
    names = [n for n, _ in module.named_parameters()]

    def f(x: Tensor, *ps: Tensor) -> tuple[Tensor, ...]:
        return (torch.func.functional_call(module, dict(zip(names, ps, strict=True)), (x,)),)

    (ours,) = run_captured(f, X, *parameters)
    assert relative(ours, module(X).detach()) < 1e-3


def test_capture_gives_no_warning():
    def f(x: Tensor) -> tuple[Tensor, ...]:
        w = x.detach().requires_grad_()
        return torch.autograd.grad((w * w).sum(), (w,))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        captured(f, X)
    assert not torch.is_anomaly_enabled()


def test_one_value_can_be_an_output_in_two_shapes():
    def f(x: Tensor) -> tuple[Tensor, ...]:
        top = x.amax(1)
        return top, top[:, None], top.reshape(2, 2)

    program = captured(f, X).program
    assert differing_nodes(program, [[X]]) == []
    for ours, theirs in zip(Executor(program).run([[X]])[0], f(X), strict=True):
        assert torch.equal(ours, theirs)


def test_joining_many_tensors_moves_everything_twice_not_once_per_tensor():
    tensors = [_x(1, 6, seed=k) for k in range(16)]
    program = captured(lambda *xs: (torch.cat(xs).sum(0),), *tensors).program
    moved = sum(n.spec.numel for n in program.nodes if isinstance(n, Map))
    assert moved <= 2 * 16 * 6
    assert differing_nodes(program, [tensors]) == []
    torch.testing.assert_close(Executor(program).run([tensors])[0][0], torch.cat(tensors).sum(0))


@pytest.mark.parametrize("number", [True, False])
def test_truth_values_meet_python_truth_values_as_in_pytorch(number: bool):
    def function(b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return b * number, b + number, b < number, b >= number, b * 1.0 + number

    b = torch.tensor([True, False, True])
    for ours, theirs in zip(run_captured(function, b), function(b), strict=True):
        assert ours.tolist() == theirs.tolist()
