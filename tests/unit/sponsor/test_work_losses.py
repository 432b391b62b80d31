"""What a solver's screen says of its work: the run's own loss on a few examples, and never at the cost of its work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from eth_account import Account
from torch import Tensor, nn
from torch.nn import functional as F

from assay.amounts import TEST_MONEY
from assay.cli import acting
from assay.cli.acting import TellsLosses
from assay.engine.runtime.values.state_io import to_lists_of_bytes
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import UnavailableError
from assay.protocol.program.nodes import Const, Map
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Address, Digest, DType, Round, Seat
from assay.sponsor import work_losses
from assay.sponsor.preparing import PreparedRounds, prepare_recipe_rounds
from assay.sponsor.publishing import publish, publish_card
from assay.sponsor.work_losses import WINDOWS, WorkLosses, examples_of, operations
from assay.training.evaluate import split_loss
from assay.training.model import build_model
from assay.training.presets import TINY
from assay.training.recipes.recipe import Recipe
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.archive import Archive
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects
from assay_solver.agent import Solver
from tests.harness.actors.whole_run import tiny_rounds

RUN = Address(bytes(20))
SHARDS = 2


def loss(module: nn.Module, rows: Tensor) -> Tensor:
    return F.cross_entropy(module(rows[:, :2]), rows[:, 2].to(torch.int64))


def rows(count: int, seed: int) -> Tensor:
    points = torch.rand(count, 2, generator=torch.Generator().manual_seed(seed)) - 0.5
    return torch.cat([points, (points[:, :1] > 0).float()], 1)


def recipe(*, validation: bool = True) -> Recipe:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    held_out = (rows(24, 2),) if validation else None
    return Recipe(module, loss, optimizer, (rows(64, 1),), batch_size=8, validation=held_out)


@pytest.fixture(scope="module")
def prepared() -> PreparedRounds:
    return prepare_recipe_rounds(recipe(), "own", SHARDS, inner_steps=10)


def archive_of(prepared: PreparedRounds, folder: Path) -> Archive:
    """A run of these programs, as a solver sees it: published, with its card."""
    store = open_store(folder)
    publish(store, prepared)
    publish_card(store, prepared, RUN, 7)
    data, length = prepared.genesis.data, prepared.genesis.data_length // SHARDS
    scalars = lambda r, s: SimpleNamespace(shard=(r + s) % SHARDS, shard_length=length)  # noqa: E731
    facts = SimpleNamespace(address=RUN, rounds=SimpleNamespace(data=data), round_scalars=scalars)
    charter = SimpleNamespace(step=prepared.genesis.step, training=SimpleNamespace(data=data))
    return Archive(charter, facts, Objects(store), SimpleNamespace())  # type: ignore[arg-type]


def first_parameters(prepared: PreparedRounds) -> tuple[bytes, ...]:
    return to_lists_of_bytes([prepared.parameters])[0]


def with_loss(prepared: PreparedRounds, program: Program) -> PreparedRounds:
    """The same run under a card that names another loss."""
    return replace(prepared, origin=replace(prepared.origin, validation=None, loss=program))


def test_the_losses_are_those_of_stock_pytorch_on_the_shard_and_on_what_is_held_out(
    prepared: PreparedRounds, tmp_path: Path
) -> None:
    found = WorkLosses(archive_of(prepared, tmp_path)).after(Round(1), Seat(0), first_parameters(prepared))
    assert found is not None and (found.examples, found.held_out) == (8, 8)
    own = recipe()
    assert own.validation is not None
    with torch.no_grad():
        # The second of two shards, every fourth row of its thirty-two.
        assert found.training == pytest.approx(float(loss(own.module.eval(), own.data[0][32::4])), rel=1e-4)
        assert found.validation == pytest.approx(float(loss(own.module.eval(), own.validation[0][:8])), rel=1e-4)
    assert str(found).startswith("training loss 0.") and "validation loss 0." in str(found)


def test_a_recipe_that_holds_nothing_out_has_a_training_loss_all_the_same(tmp_path: Path) -> None:
    made = prepare_recipe_rounds(recipe(validation=False), "own", SHARDS, inner_steps=10)
    found = WorkLosses(archive_of(made, tmp_path)).after(Round(0), Seat(0), first_parameters(made))
    own = recipe()
    with torch.no_grad():
        expected = float(loss(own.module.eval(), own.data[0][:32:4]))
    assert found is not None and found.training == pytest.approx(expected, rel=1e-4)
    assert found.validation is None and "validation" not in str(found)


def test_a_preset_is_weighed_by_its_stock_module(tmp_path: Path) -> None:
    made = tiny_rounds(SHARDS)
    archive = archive_of(made, tmp_path)
    found = WorkLosses(archive).after(Round(1), Seat(0), first_parameters(made))
    half = made.data.numel() // SHARDS
    few = made.data[half : half + WINDOWS * TINY.context + 1]
    model = build_model(TINY, archive.step.specs[archive.step.input_nodes[0][0]].dims[0])
    assert found is not None and found.examples == WINDOWS
    assert found.training == pytest.approx(split_loss(model, made.parameters, few, TINY.context))
    assert found.validation is not None and found.held_out > 0


@pytest.mark.parametrize("what", ["preset", "letters"])
def test_a_card_of_another_preset_or_of_more_letters_ends_no_solver(tmp_path: Path, what: str) -> None:
    made = tiny_rounds(SHARDS)
    text, archive = made.origin.text.decode(), archive_of(made, tmp_path)
    # The last letters are held out, so that the run's tokens are as they were.
    other = text if what == "preset" else text[:-1] + "\U0010ffff"
    origin = replace(made.origin, preset="demo" if what == "preset" else "tiny", text=other.encode())
    run = archive.facts.address = Address(b"\1" * 20)  # type: ignore[misc]
    publish_card(archive.objects.store, replace(made, origin=origin), run, 7)
    said: list[str] = []
    TellsLosses(WorkLosses(archive), said.append)(Round(0), Seat(0), first_parameters(made))
    assert len(said) == 1 and "not those of the run's model" in said[0]


def test_held_out_examples_beyond_what_a_screen_is_worth_are_not_read(
    prepared: PreparedRounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archive_of(prepared, tmp_path)
    monkeypatch.setattr(work_losses, "MOST_HELD_OUT", 24 * 3 * 4 - 1)
    monkeypatch.setattr(work_losses, "held_out", lambda *_: pytest.fail("it reads them"))
    found = WorkLosses(archive).after(Round(0), Seat(0), first_parameters(prepared))
    assert found is not None and found.validation is None


def test_evaluations_after_the_first_take_at_most_a_hundredth_of_the_cpu_time(
    prepared: PreparedRounds, tmp_path: Path
) -> None:
    now = [0.0]

    def cpu() -> float:
        now[0] += 0.5  # between its begin and its end an evaluation takes half a second
        return now[0]

    losses, shown, given = WorkLosses(archive_of(prepared, tmp_path), cpu), [], first_parameters(prepared)
    for number in range(100):
        shown.append(losses.after(Round(number), Seat(0), given) is not None)
        now[0] += 10.0
    assert shown[:2] == [True, True], "the first, and one more to learn what another costs"
    assert 5 < sum(shown) < 30
    assert sum(losses.spent[1:]) <= 0.01 * now[0] + 0.5


def widened(program: Program) -> Program:
    """The program with a map of many elements that nothing reads."""
    s, first = ScalarBuilder([]), len(program.nodes) - sum(program.outputs)
    node = Map(TensorSpec(DType.F32, (1 << 16,)), (), s.build(s.f32(1.0)).encode())
    return replace(program, nodes=(*program.nodes[:first], node, *program.nodes[first:]))


def lengthened(program: Program, step: Program) -> Program:
    """The program with more nodes than the step has, each of one element: nothing to compute, long to make ready."""
    first = len(program.nodes) - sum(program.outputs)
    s = ScalarBuilder([])
    node = Map(TensorSpec(DType.F32, ()), (), s.build(s.f32(1.0)).encode())
    return replace(program, nodes=(*program.nodes[:first], *[node] * len(step.nodes), *program.nodes[first:]))


def test_a_card_whose_loss_takes_more_than_a_step_costs_a_solver_nothing(
    prepared: PreparedRounds, tmp_path: Path
) -> None:
    honest = prepared.origin.loss
    assert honest is not None and operations(honest) < operations(prepared.programs[0])
    said: list[str] = []
    step = prepared.programs[0]
    long = lengthened(honest, step)
    assert operations(long) < operations(step)
    for name, program in (("wide", widened(honest)), ("step", step), ("long", long)):
        archive = archive_of(with_loss(prepared, program), tmp_path / name)
        with pytest.raises(UnavailableError) as refused:
            WorkLosses(archive).after(Round(0), Seat(0), first_parameters(prepared))
        assert refused.value.code == "CardWrong"
        tells = TellsLosses(WorkLosses(archive), said.append)
        tells(Round(0), Seat(0), first_parameters(prepared))
        tells(Round(1), Seat(0), first_parameters(prepared))
    assert len(said) == 3 and all("no loss can be shown of round 0" in line for line in said)


def test_a_run_without_a_card_goes_on_without_losses(prepared: PreparedRounds, tmp_path: Path) -> None:
    archive, said = archive_of(prepared, tmp_path), list[str]()
    archive.facts.address = Address(b"\1" * 20)  # type: ignore[misc]
    TellsLosses(WorkLosses(archive), said.append)(Round(0), Seat(0), first_parameters(prepared))
    assert len(said) == 1 and "round 0" in said[0]


def test_no_more_is_read_for_a_loss_than_the_run_itself_has_room_for(prepared: PreparedRounds, tmp_path: Path) -> None:
    """A card's program or text is read whole before it is known to be none of the run's."""
    honest = prepared.origin.loss
    assert honest is not None
    spec = TensorSpec(DType.F32, (1 << 16,))
    first, root = len(honest.nodes) - sum(honest.outputs), tensor_root(spec, spec.zeros())
    nodes = (*honest.nodes[:first], Const(spec, root), *honest.nodes[first:])
    heavy = replace(honest, nodes=nodes, consts={**honest.consts, root: spec.zeros()})
    by_preset = tiny_rounds(SHARDS)
    long_text = replace(by_preset, origin=replace(by_preset.origin, text=b"x" * 10 * by_preset.data.numel()))
    for name, made in (("program", with_loss(prepared, heavy)), ("text", long_text)):
        archive, read = archive_of(made, tmp_path / name), list[int]()
        get = archive.objects.store.get

        def noted(digest: Digest, max_bytes: int, get: Callable[..., bytes] = get, read: list[int] = read) -> bytes:
            data = get(digest, max_bytes)
            read.append(len(data))
            return data

        archive.objects.store.get = noted  # type: ignore[method-assign]
        with pytest.raises(UnavailableError) as refused:
            WorkLosses(archive).after(Round(0), Seat(0), first_parameters(made))
        assert refused.value.code in ("ObjectMismatch", "ObjectTooLarge") and max(read) < 200_000


def test_windows_of_a_shard_are_taken_whole() -> None:
    stream, chunk = TensorSpec(DType.U8, (40,)), TensorSpec(DType.U8, (2, 5))
    assert examples_of(chunk, stream, bytes(range(40)), 20, 20) == bytes([*range(20, 25), *range(28, 33)])


@pytest.mark.parametrize(
    "chunk",
    [TensorSpec(DType.I32, (2, 5)), TensorSpec(DType.U8, (2, 21)), TensorSpec(DType.U8, (2, 5, 1))],
)
def test_examples_that_the_data_does_not_have_are_refused(chunk: TensorSpec) -> None:
    with pytest.raises(UnavailableError) as refused:
        examples_of(chunk, TensorSpec(DType.U8, (40,)), bytes(40), 0, 20)
    assert refused.value.code == "CardWrong"


def test_a_card_that_names_no_digest_of_a_loss_is_refused() -> None:
    from assay.sponsor.cards import Card

    card = Card(None, None, 7, "own", ("w",), loss=Digest(bytes(32)))
    assert Card.decode(card.encode()).loss == Digest(bytes(32))
    with pytest.raises(ValueError, match="digest"):
        Card.decode(replace(card, loss=Digest(bytes(31))).encode())


def test_a_solver_that_is_started_says_its_losses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    solver = object.__new__(Solver)
    solver.archive = SimpleNamespace()  # type: ignore[assignment]
    run = SimpleNamespace(chain=SimpleNamespace(head=lambda: SimpleNamespace(number=1)))
    run.charter, run.currency, run.currency_of = SimpleNamespace(token=b""), TEST_MONEY, lambda _: TEST_MONEY
    keys = ActorKeys("ada", Account.create())
    made, _ = acting.make(lambda *_, **__: solver, run, keys, open_store(tmp_path), tmp_path, ())  # type: ignore[arg-type]
    assert isinstance(made, Solver) and isinstance(made.on_commit, TellsLosses)
