"""From a JSONL file to a captured recipe that learns, by the command and the reader that docs/data.md names."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typer.testing import CliRunner

from assay.cli.data import app
from assay.datasets.folder import open_data
from assay.engine.runtime.executor import Executor
from assay.programs.capture import capture_recipe
from assay.training.recipes.evaluation import captured_validation
from assay.training.recipes.recipe import Recipe


class Bigram(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(size, size)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.table(tokens)  # type: ignore[no-any-return]


def loss(module: nn.Module, tokens: Tensor) -> Tensor:
    tokens = tokens.to(torch.int64)
    return F.cross_entropy(module(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def test_a_recipe_learns_what_a_jsonl_file_says(tmp_path: Path) -> None:
    rows = [{"text": "abcabcabc" * 3, "n": k} for k in range(40)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ["convert", str(tmp_path / "rows.jsonl"), "--field", "text", "--to", str(tmp_path / "out"), "--json"]
    card = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "out"), "--json"], catch_exceptions=False)
    assert json.loads(shown.stdout) == card
    assert "tokenizer" in CliRunner().invoke(app, ["show", str(tmp_path / "out")], catch_exceptions=False).stdout

    data = open_data(tmp_path / "out", tokenizer=card["tokenizer"]["sha256"])
    torch.manual_seed(48)
    module = Bigram(card["tokenizer"]["size"])
    optimizer = torch.optim.SGD(module.parameters(), lr=5.0)
    recipe = Recipe(module, loss, optimizer, data=data.train, validation=data.validation, window=9, batch_size=8)
    captured = capture_recipe(recipe)
    held_out = captured_validation(recipe)
    assert held_out is not None
    after = Executor(captured.program).repeat(captured.state, 40)
    evaluation, examples = Executor(held_out.program), [held_out.examples[:8]]
    losses = [float(evaluation.run([state[0], examples])[0][0]) for state in (captured.state, after)]
    assert losses[1] < 0.6 < 1.0 < losses[0]
    # What the program trained on is what the card names: the data root of a run.
    assert "0x" + captured_root(captured.state) == card["tensors"]["train"]["tokens"]["root"]


def captured_root(state: list[list[Tensor]]) -> str:
    from assay.engine.runtime.values.state_io import root_of

    return root_of(state[2][-1]).hex()
