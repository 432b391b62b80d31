"""Rows of the capture report: each model's own process, whatever it does, and what its row says."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from assay.programs.against_eager import steps_that_fit
from assay.programs.capture import capture_recipe
from assay.programs.capture_report import CaptureEnd, CaptureReport, beside_stock, report_of
from assay.programs.factory import listed, load_recipe
from assay.programs.frozen_state import frozen_state
from assay.programs.report_process import ReportTerms, reports
from assay.protocol.errors import ExitCode, UserError
from assay.training.recipes.recipe import Recipe, RecipeStep
from tests.harness.commands import assay

torch.set_num_threads(1)
ROOT = Path(__file__).resolve().parents[3]
HERE = "tests.unit.training.test_capture_report"
ISSUED = ("captured", "refusals", "nodes", "seconds", "equal_bits", "loss_eager", "loss_exact", "frozen_state")


def squared(module: nn.Module, x: Tensor) -> Tensor:
    return (module(x) ** 2).mean()


def line(loss: object = squared, decay: float = 0.0) -> Recipe:
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, weight_decay=decay)
    return Recipe(module, loss, optimizer, (torch.randn(8, 3),), 4)  # type: ignore[arg-type]


def in_frequencies() -> Recipe:
    return line(lambda module, x: torch.fft.rfft(module(x)).abs().mean())


def failing() -> Recipe:
    raise RuntimeError("there is no such file")


def hanging() -> Recipe:
    while True:
        time.sleep(1.0)


def ended() -> Recipe:
    print("the last words", flush=True)
    os._exit(9)


def hungry() -> Recipe:
    return line(lambda module, x: squared(module, x) + torch.ones(1 << 34).sum())


LIST = {"line": line, "frequencies": in_frequencies, "failing": failing, "ended": ended, "hungry": hungry}


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, CaptureReport]]:
    """The rows of the list, and of what hangs."""
    patch = pytest.MonkeyPatch()
    patch.chdir(ROOT)
    terms = ReportTerms(steps=3, memory=8 << 30)
    found = dict(zip(LIST, (row for _, row in reports(listed(f"{HERE}:LIST"), terms)), strict=True))
    (found["hanging"],) = (row for _, row in reports([f"{HERE}:hanging"], ReportTerms(seconds=1.0)))
    yield found
    patch.undo()


def test_a_right_model_says_what_was_compared(rows: dict[str, CaptureReport]) -> None:
    row = rows["line"]
    assert row.outcome is CaptureEnd.RIGHT and row.captured and row.error is None and not row.refusals
    assert row.nodes > 0 and row.seconds > 0 and row.steps == 3 and row.tensors == 2 and row.frozen_state == []
    assert row.equal_bits is not False and row.parting is None
    assert row.loss_eager is not None and row.loss_exact == pytest.approx(row.loss_eager, abs=1e-5)
    assert set(ISSUED) <= set(row.to_json())


def test_a_refused_model_names_what_has_no_exact_form_and_where(rows: dict[str, CaptureReport]) -> None:
    row = rows["frequencies"]
    assert row.outcome is CaptureEnd.REFUSED and not row.captured
    assert any("fft" in what and "test_capture_report.py:" in what for what in row.refusals)


def test_no_models_end_ends_the_report(rows: dict[str, CaptureReport]) -> None:
    wrong = ("failing", "ended", "hungry", "hanging")
    assert {rows[name].outcome for name in wrong} == {CaptureEnd.CRASHED}
    assert "there is no such file" in str(rows["failing"].error)
    assert rows["ended"].error == "its process ended with 9: the last words"
    assert "memory" in str(rows["hungry"].error)
    assert rows["hanging"].error == "it was not done after 1 s"


def test_a_program_that_trains_something_else_is_silently_wrong() -> None:
    captured = capture_recipe(line(decay=5.0), "fixed22")
    row = beside_stock(captured, RecipeStep(line()), 2, 0.0)
    assert row.outcome is CaptureEnd.WRONG and row.parting is not None and row.parting["step"] == 1


class Counting(nn.Linear):
    """Counts its calls beside its buffers, once a switch is on."""

    def __init__(self) -> None:
        super().__init__(3, 2)
        self.calls, self.average = 0, torch.zeros(2)
        self.register_buffer("total", torch.zeros(2))
        self.is_counting: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if self.is_counting:
            self.calls += 1
            self.average = self.average * 0.9 + y.detach().mean(0)
            self.total += 1.0
        return y


def test_a_large_model_is_compared_over_the_steps_that_fit_and_its_row_says_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = RecipeStep(line())
    size = sum(t.nbytes for part in step.state()[:2] for t in part)
    monkeypatch.setattr("assay.programs.against_eager.MOST", 3 * 2 * size + 1)
    row = report_of(line, 4, "fixed14")
    assert steps_that_fit(step) == 2 and row.outcome is CaptureEnd.RIGHT and row.steps == 2


def test_a_model_of_which_no_step_fits_is_not_compared_and_did_not_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.programs.against_eager.MOST", 1)
    row = report_of(line, 4, "fixed14")
    assert row.outcome is CaptureEnd.UNCOMPARED and row.captured and row.nodes and "TooMuchToCompare" in str(row.error)


def test_what_stock_steps_change_and_no_slot_holds_is_named() -> None:
    given = line()
    module = Counting()
    step = RecipeStep(Recipe(module, squared, torch.optim.SGD(module.parameters(), 0.1), given.data, 4))
    assert frozen_state(step) == []
    module.is_counting.append(1)
    assert frozen_state(step) == ["average", "calls", "total"]


class Noting(nn.Linear):
    """Notes things of its last call; `reads` begins the next call with one of them."""

    def __init__(self) -> None:
        super().__init__(3, 2)
        self.level: int | None = None
        self.last: Tensor | None = None
        self.reads = False
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        before = self.last if self.reads else None
        self.level = 1
        self.level *= 2
        y = super().forward(x)
        self.last = y.detach().mean(0)
        self.seen.copy_(self.last)
        return y if before is None else y + before


def noted() -> RecipeStep:
    module = Noting()
    return RecipeStep(Recipe(module, squared, torch.optim.SGD(module.parameters(), 0.1), line().data, 4))


def test_what_a_step_writes_before_it_reads_is_no_frozen_state() -> None:
    assert frozen_state(noted()) == []


def test_what_a_step_reads_from_the_step_before_is_frozen_state() -> None:
    step = noted()
    step.recipe.module.reads = True  # type: ignore[assignment]
    assert "last" in frozen_state(step)


def test_a_program_with_frozen_state_is_not_called_right() -> None:
    module = Counting()
    given = Recipe(module, squared, torch.optim.SGD(module.parameters(), 0.1), line().data, 4)
    captured, step = capture_recipe(given, "fixed22"), RecipeStep(given)
    module.is_counting.append(1)
    row = beside_stock(captured, step, 2, 0.0)
    assert row.parting is None and row.frozen_state and row.outcome is CaptureEnd.WRONG


def test_a_report_in_this_process_raises_nothing() -> None:
    assert report_of(failing, 1, "fixed14").outcome is CaptureEnd.CRASHED
    assert report_of(in_frequencies, 1, "fixed14").outcome is CaptureEnd.REFUSED


@pytest.mark.parametrize("name", ["LIST[lime]", "line[line]", "LIST[line"])
def test_an_entry_that_is_not_on_the_list_is_refused_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(UserError) as caught:
        load_recipe(f"{HERE}:{name}")
    assert caught.value.exit_code is ExitCode.USAGE and name.split("[")[0] in str(caught.value)


def test_the_command_prints_every_row_and_ends_with_the_gravest(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {
        CaptureEnd.RIGHT: CaptureReport(
            CaptureEnd.RIGHT, captured=True, loss_eager=1.0, loss_exact=1.0, equal_bits=True
        )
    }
    made |= {o: CaptureReport(o, error="for a reason") for o in CaptureEnd if o is not CaptureEnd.RIGHT}
    monkeypatch.setattr("assay.programs.factory.listed", lambda name: [name])
    monkeypatch.setattr(
        "assay.programs.report_process.reports", lambda names, _: [(n, made[CaptureEnd(n)]) for n in names]
    )

    def ended_with(*outcomes: CaptureEnd) -> int:
        done = assay(monkeypatch, "model", "capture-report", *outcomes)
        assert all(outcome.value in done.stdout for outcome in outcomes)
        return 0 if done.exception is None else int(getattr(done.exception, "exit_code", -1))

    assert ended_with(CaptureEnd.RIGHT) == ExitCode.OK
    assert ended_with(CaptureEnd.RIGHT, CaptureEnd.REFUSED) == ExitCode.NUMERICS
    assert ended_with(CaptureEnd.REFUSED, CaptureEnd.UNCOMPARED) == UserError.exit_code
    assert ended_with(CaptureEnd.UNCOMPARED, CaptureEnd.CRASHED) == ExitCode.ERROR
    assert ended_with(CaptureEnd.CRASHED, CaptureEnd.WRONG, CaptureEnd.RIGHT) == ExitCode.PARTED
    done = assay(monkeypatch, "model", "capture-report", "right", "--json")
    assert set(ISSUED) <= set(json.loads(done.stdout)["right"])


def test_program_check_runs_beside_eager_and_wants_the_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    file, right = str(tmp_path / "line.program"), f"{HERE}:line"
    assert assay(monkeypatch, "program", "capture", right, "--out", file).exit_code == 0
    done = assay(monkeypatch, "program", "check", file, "--against-eager", "2", "--factory", right, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["against_eager"]["parting"] is None
    alone = assay(monkeypatch, "program", "check", file, "--against-eager", "2")
    assert alone.exception is not None and getattr(alone.exception, "code", "") == "FactoryNotNamed"
    other = assay(monkeypatch, "program", "check", file, "--against-eager", "2", "--factory", f"{HERE}:decaying")
    assert getattr(other.exception, "exit_code", None) is ExitCode.PARTED and "weight" in str(other.exception)


def decaying() -> Recipe:
    return line(decay=5.0)
