"""`assay train compare`: methods over slow links side by side, by the programs of a run."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from assay.bench import compare
from assay.bench.compare import (
    METHODS,
    ComparedRow,
    ComparedRun,
    Training,
    add_row,
    read_rows,
    run_jobs,
    setting_of,
    summary,
    train,
)
from assay.bench.methods.trained import PresetModel
from assay.cli.train import app
from assay.engine.runtime.values.dtypes import to_bytes
from assay.engine.runtime.values.state_io import root_of
from assay.protocol.errors import UserError
from assay.protocol.trees.state import RoundScalars, Scalar
from assay.protocol.types import Digest, Round, Seat
from assay.training.data import corpus_from_text
from assay.training.presets import TINY
from tests.unit.bench.test_quality import WORDS

ROOT = Path(__file__).parents[3]

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

TEXT = "".join(WORDS[k * 7 % 90 :] for k in range(60))
JOB = ComparedRun("f32", "tiny", workers=2, seed=1, rounds=2, inner_steps=5)


@pytest.fixture(scope="module")
def model() -> PresetModel:
    return PresetModel(TINY, corpus_from_text(TEXT))


PLAIN = ("f32", "bf16", "int8", "int4", "sparse", "sparse-carried", "sparse-carried-int4")


@pytest.fixture(scope="module")
def untrained(model: PresetModel) -> float:
    return Training(JOB, model).loss()


@pytest.mark.long
def test_every_method_trains_and_small_updates_train_nearly_alike(model: PresetModel, untrained: float) -> None:
    rows = {name: train(replace(JOB, method=name), model) for name in PLAIN}
    assert all(row.loss < untrained - 0.3 and row.tokens == 2 * 5 * 2 * 2 * 8 for row in rows.values())
    for name in ("bf16", "int8", "int4"):
        assert rows[name].loss == pytest.approx(rows["f32"].loss, rel=0.005)
    sizes = [rows[name].bytes_per_parameter for name in ("f32", "bf16", "int8", "int4", "sparse")]
    assert sizes[:2] == [4.0, 2.0] and sizes == sorted(sizes, reverse=True)
    carried = {name: row.carried for name, row in rows.items() if row.carried}
    assert carried == {"sparse-carried": 4.0, "sparse-carried-int4": rows["int4"].bytes_per_parameter}


@pytest.mark.long
def test_fragments_in_turn_divide_the_peak_and_arrive_all_in_the_end(model: PresetModel, untrained: float) -> None:
    row = train(replace(JOB, method="streaming-overlap"), model)
    assert row.loss < untrained - 0.3 and row.carried > 12
    # Two rounds, and three of four fragments once more.
    assert pytest.approx(row.bytes_per_parameter, rel=0.02) == 4 * (2 + 0.75) / 2
    assert row.peak_bytes_per_parameter == pytest.approx(1.0, rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in METHODS if name not in PLAIN])
def test_other_methods_train_on_as_many_tokens(model: PresetModel, untrained: float, name: str) -> None:
    row = train(replace(JOB, method=name), model)
    assert row.loss < untrained - 0.1 and row.tokens == 2 * 5 * 2 * 2 * 8
    assert 0 < row.peak_bytes_per_parameter <= max(4.0, row.bytes_per_parameter) and 0 <= row.rule_share < 1
    assert bool(row.carried) == (METHODS[name].carrier is not None or name in KEEPING)


LATE = ("delayed", "eager", "delayed-plain", "eager-plain", "delayed-slow", "eager-slow")
KEEPING = (*LATE, "lofi", "streaming", "streaming-int4", "streaming-overlap", "demo-ranks")


def test_a_training_is_the_same_again_and_a_seed_makes_another(model: PresetModel) -> None:
    job = replace(JOB, method="sparse-carried-int4", rounds=1)
    assert train(job, model).loss == train(job, model).loss != train(replace(job, seed=2), model).loss


def test_a_runs_identity_draws_the_batches_that_its_seats_have(model: PresetModel) -> None:
    run_id = Digest(sha256(b"a run").digest())
    job = replace(JOB, rounds=1, run_id=run_id.hex())
    drawn = setting_of(job, model).scalars(3, 1)
    length = model.corpus.shard_length(JOB.workers)
    data = root_of(model.data)
    expected = RoundScalars(run_id, Seat(1), Round(3), JOB.inner_steps, JOB.workers, length, 0, data).values()
    del expected[Scalar.LR]
    assert {which: to_bytes(drawn[which]) for which in expected} == expected
    own, other = train(job, model), train(replace(job, run_id=""), model)
    assert own.root != other.root and len(own.root) == 64
    assert train(replace(job, method="sparse-carried"), model).root == ""


@pytest.mark.long
def test_groups_merge_as_one_level_does_and_their_sums_may_be_rounded(model: PresetModel) -> None:
    """Three workers in groups of two: one place is nobody's."""
    job, merged = replace(JOB, workers=3, rounds=1), {}
    for size, sums in ((0, "f32"), (2, "f32"), (2, "bf16"), (2, "int8")):
        training = Training(replace(job, group_size=size, sums=sums), model)
        training.round(0)
        merged[size, sums] = torch.cat([p.flatten() for p in training.parameters])
    start = torch.cat([p.flatten() for p in model.start(1, as_a_run=False)])
    moved = float((merged[0, "f32"] - start).norm())
    apart = {of: float((one - merged[0, "f32"]).norm()) / moved for of, one in merged.items()}
    assert apart[2, "f32"] < 1e-5 < apart[2, "bf16"] < apart[2, "int8"] < 0.05


def test_each_worker_keeps_what_it_did_not_send_from_round_to_round(model: PresetModel) -> None:
    training = Training(replace(JOB, method="sparse-carried"), model)
    training.round(0)
    first = [t.clone() for t in training._kept[0]]
    assert any(t.any() for t in first)
    training.round(1)
    assert not all(torch.equal(a, b) for a, b in zip(first, training._kept[0], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(*training._kept, strict=True))


@pytest.mark.long
def test_what_the_file_holds_is_not_run_again_and_stands_beside_f32(model: PresetModel, tmp_path: Path) -> None:
    file, said = tmp_path / "runs.csv", []
    jobs = [replace(JOB, method=name, rounds=1) for name in ("int8", "f32")]
    assert [row.method for row in run_jobs(jobs, model, file, said.append)] == ["f32", "int8"]
    assert len(said) == 2 and list(run_jobs(jobs, model, file, said.append)) == []
    dense, rows = {row.method: row.loss for row in read_rows(file)}["f32"], read_rows(file)
    found = summary(rows, jobs, model.digest)
    assert [row["method"] for row in found] == ["int8", "f32"]
    assert [row["loss_dense"] for row in found] == [dense] * 2
    # Another text is another training.
    shorter = PresetModel(TINY, corpus_from_text(TEXT[:-200]))
    assert len(list(run_jobs(jobs[1:], shorter, file, said.append))) == 1


@pytest.mark.parametrize("name", ["merges.csv", "updates.csv"])
def test_files_of_former_versions_are_read_and_added_to(model: PresetModel, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes((ROOT / "docs" / name).read_bytes())
    lines, before = len(file.read_text(encoding="utf-8").splitlines()), read_rows(file)
    assert len(before) == lines - 1 and all(row.peak_bytes_per_parameter > 0 for row in before)
    (added,) = run_jobs([replace(JOB, rounds=1)], model, file, lambda _line: None)
    assert read_rows(file) == [*before, added]
    file.write_text("method,preset,workers,seed,rounds,inner_steps,loss,bytes_per_parameter,carried,tokens,cpu_s,text,")
    with file.open("a", encoding="utf-8") as out:
        out.write("code\nint8,tiny,2,1,20,10,2.5,1.1,0.0,100,1.0,ab,cd\n")
    (first,) = read_rows(file)
    assert first.run == ComparedRun("int8", "tiny", 2, 1, 20, 10) and first.rule_share is None
    assert first.peak_bytes_per_parameter == 1.1 and first.fooled == 0.0


def test_two_that_add_columns_to_a_file_at_once_lose_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "merges.csv"
    file.write_bytes((ROOT / "docs" / "merges.csv").read_bytes())
    before = read_rows(file)
    ours, theirs = (replace(before[0], seed=seed) for seed in (8001, 8002))
    other = threading.Thread(target=add_row, args=(theirs, file))

    def read(place: Path) -> list[ComparedRow]:
        """As it is read before it is written again; meanwhile another process adds its row, or waits."""
        rows = read_rows(place)
        if threading.current_thread() is not other:
            other.start()
            other.join(timeout=0.3)
        return rows

    monkeypatch.setattr(compare, "read_rows", read)
    add_row(ours, file)
    other.join()
    assert read_rows(file) == [*before, ours, theirs]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_the_command_gives_a_row_for_each_method(tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_text(TEXT, encoding="utf-8")
    options = ["compare", "--data", str(data), "--out", str(tmp_path / "r.csv"), "--method", "int4", "--workers", "2"]
    options += ["--rounds", "1", "--inner-steps", "2", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [row["method"] for row in rows] == ["f32", "int4"]
    assert {"method", "workers", "seed", "loss", "loss_dense", "bytes_per_parameter", "tokens"} <= rows[0].keys()
    assert "int4" in CliRunner().invoke(app, options[:-1]).output


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--method", "gossip"], "UnknownMethod"),
        (["--workers", "0,2"], "BadNumbers"),
        (["--sums", "sparse", "--group-size", "2"], "UnknownSums"),
        (["--sums", "int8"], "SumsOfNoGroups"),
        (["--method", "eager", "--group-size", "2"], "UnpoisonedMethod"),
        (["--run-id", "0x12"], "BadRunId"),
        (["--run-id", "a run"], "BadRunId"),
    ],
    ids=["method", "workers", "sums", "groups", "no-run", "short", "words"],
)
def test_what_is_no_method_or_number_is_said_before_anything_runs(words: list[str], code: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["compare", "--out", str(tmp_path / "r"), *words])
    assert isinstance(result.exception, UserError) and result.exception.code == code
