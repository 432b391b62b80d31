"""What cannot be captured is refused by name, with the user's own line and a remedy."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.capture import CannotLowerError
from assay.protocol.errors import UserError
from tests.harness.engine.helpers import captured

X = torch.zeros(4, 6)


def test_what_cannot_be_lowered_is_refused_with_every_offender_and_its_line():
    def f(x: Tensor) -> tuple[Tensor, ...]:
        a = torch.special.i0(x)
        b = torch.lgamma(x)
        return (a + b, x * 2.0)

    with pytest.raises(CannotLowerError) as caught:
        captured(f, X)
    message = caught.value.message
    first = f.__code__.co_firstlineno
    assert "aten.i0.default" in message
    assert "aten.lgamma.default" in message
    assert f"test_capture_refusals.py:{first + 1}" in message
    assert f"test_capture_refusals.py:{first + 2}" in message
    assert caught.value.remedy


def test_the_gradient_of_an_unknown_operation_names_its_forward_line():
    def f(x: Tensor) -> tuple[Tensor, ...]:
        w = x.detach().requires_grad_()
        a = w * 2.0
        y = torch.lgamma(a)
        z = y + 1.0
        return torch.autograd.grad(z.sum(), (w,))

    with pytest.raises(CannotLowerError) as caught:
        captured(f, X)
    assert f"test_capture_refusals.py:{f.__code__.co_firstlineno + 3} (gradient)" in caught.value.message


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: (x if x.sum() > 0 else -x,), "cannot be captured"),
        (lambda x: (x.double(),), r"float64 (write .float()"),
        (lambda x: (torch.lgamma(x),), "aten.lgamma.default"),
        (lambda x: (F.dropout(x, 0.5),), "bernoulli"),
        (lambda x: (x[x > 0],), "by a mask"),
        (
            lambda x: (x.scatter(1, torch.zeros(4, 2, dtype=torch.int64), x[:, :2]),),
            "two values at one place",
        ),
    ],
    ids=["branch", "double", "power", "dropout", "mask", "repeated writes"],
)
def test_unsupported_functions_are_refused_in_one_sentence(function, words: str):
    with pytest.raises(UserError) as caught:
        captured(function, X)
    assert words in caught.value.message
    assert caught.value.remedy


def test_what_a_step_computes_in_a_thread_of_its_own_is_refused():
    """A trace sees its own thread alone; the comparison of two traces ended in a traceback."""

    def f(x: Tensor) -> tuple[Tensor, ...]:
        found: list[Tensor] = []
        thread = threading.Thread(target=lambda: found.append(x * 2.0))
        thread.start()
        thread.join()
        return (found[0] + 1.0,)

    with pytest.raises(UserError, match="where tracing does not see it") as caught:
        captured(f, X)
    assert caught.value.code == "NotCapturable" and "thread" in caught.value.remedy


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.float16])
def test_an_input_type_that_no_state_holds_is_refused(dtype: torch.dtype):
    with pytest.raises(UserError, match=str(dtype)):
        captured(lambda x: (x,), X.to(dtype))


def test_what_depends_on_values_is_named_with_the_users_line():
    def branch(x: Tensor) -> tuple[Tensor, ...]:
        return (x if bool((x > 0).all()) else -x,)

    def size(x: Tensor) -> tuple[Tensor, ...]:
        return (x * 2.0, torch.nonzero(x).float().sum())

    for function, words in ((branch, "depends on a tensor's values"), (size, "aten.nonzero.default")):
        with pytest.raises(UserError, match=words) as caught:
            captured(function, X)
        assert f"test_capture_refusals.py:{function.__code__.co_firstlineno + 1}" in caught.value.message


def test_a_mask_whose_gradient_has_a_size_of_its_own_is_named_with_its_line():
    def masked(x: Tensor) -> tuple[Tensor, ...]:
        y = x.detach().requires_grad_()
        loss = y[y > 0].sum()
        return torch.autograd.grad(loss, y)

    with pytest.raises(UserError, match="indexing by a mask") as caught:
        captured(masked, X)
    assert f"test_capture_refusals.py:{masked.__code__.co_firstlineno + 2}" in caught.value.message


def test_a_parameter_that_is_no_input_is_refused():
    hidden = nn.Linear(6, 3)
    with pytest.raises(CannotLowerError, match=r"a parameter that is no input.*requires_grad_"):
        captured(lambda x: (hidden(x),), X)


def loops(x: Tensor) -> tuple[Tensor, ...]:
    out = torch.zeros_like(x)
    for k in range(2):
        rows, _ = torch.where(x[:, :2] > k)
        out[rows] += x[rows] * 2.0
    return (out,)


def chosen(x: Tensor) -> tuple[Tensor, ...]:
    rows, columns = torch.where(x > 0)
    return (x[rows, columns].sum(),)


@pytest.mark.parametrize("function", [loops, chosen])
def test_rows_that_values_choose_are_refused_with_their_line_and_what_to_do(function):
    """As experts take the tokens that are theirs: PyTorch's own words named a file of its build, and no line."""
    with pytest.raises(UserError) as caught:
        captured(function, X)
    line = function.__code__.co_firstlineno + (3 if function is loops else 1)
    assert "aten.nonzero.default" in caught.value.message
    assert f"test_capture_refusals.py:{line}" in caught.value.message
    assert "torch.where" in caught.value.explain()


def test_a_layer_that_looks_at_values_is_named_below_the_line_that_calls_the_model():
    def packed(x: Tensor) -> tuple[Tensor, ...]:
        lengths = x[:, 0].to(torch.int64)
        sequence = nn.utils.rnn.pack_padded_sequence(x[..., None], lengths, batch_first=True, enforce_sorted=False)
        layer = nn.GRU(1, 3, batch_first=True)
        return (layer(sequence)[1],)

    with pytest.raises(UserError, match=r"depends on a tensor's values at .*\(in torch/nn/modules/rnn.py:\d+\)"):
        captured(packed, X)


@pytest.mark.parametrize(
    "function",
    [lambda x: (x * len(f"{x.mean():.3f}"),), lambda x: (x * float(x.detach().numpy().sum()),)],
    ids=["text", "array"],
)
def test_a_value_that_is_shown_is_refused_in_words_about_values(function):
    with pytest.raises(UserError, match=r"depends on a tensor's values at .*test_capture_refusals") as caught:
        captured(function, X)
    assert "FakeTensor" not in caught.value.explain()


def test_of_complex_numbers_it_is_said_how_to_do_without():
    with pytest.raises(CannotLowerError, match="real and imaginary parts"):
        captured(lambda x: (torch.view_as_real(torch.view_as_complex(x.reshape(12, 2)) * 1j),), X)
