"""Folders and statements whose sizes are a stranger's: refused before anything of such a size is made."""

from __future__ import annotations

import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from eth_account import Account

from assay.datasets.tokenizers import Characters
from assay.inference.model import MAX_TOKENS, PromptTooLong, gpt, read_folder, shape_of
from assay.inference.sampling import SamplingTerms
from assay.inference.statement import NO_RUN, read_statement, sign, statement_of
from assay.inference.verify import AnotherModel, FalseAnswer, check_run, replay
from assay.protocol.errors import ConfigError
from assay.protocol.types import Address
from tests.harness.inference.models import LETTERS, SHAPE, small_gpt, write_folder


@pytest.mark.parametrize(
    "sizes",
    [
        {"layers": (1 << 20) - 1},
        {"layers": 1 << 20},
        {"layers": 4096},
        {"context": (1 << 20) - 1},
        {"context": 1 << 15},
        {"context": 1 << 15, "layers": 9},
        {"width": (1 << 20) - 2},
    ],
    ids=["most-layers", "more-layers", "layers", "most-context", "context", "masks", "width"],
)
def test_sizes_that_no_tensor_has_cost_no_memory(tmp_path: Path, sizes: dict[str, int]) -> None:
    folder = write_folder(small_gpt(), tmp_path / "pulled")
    config = json.loads((folder / "config.json").read_text()) | sizes
    (folder / "config.json").write_text(json.dumps(config))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ConfigError) as refused:
        read_folder(folder)
    assert refused.value.code == "ModelWrong"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 17  # KiB


def test_a_config_without_an_end_is_read_to_its_bound(tmp_path: Path) -> None:
    folder = write_folder(small_gpt(), tmp_path / "pulled")
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("/dev/zero")
    with pytest.raises(ConfigError):
        read_folder(folder)


def test_the_largest_context_is_read() -> None:
    sizes = {"model_type": "assay_gpt", "layers": 8, "width": 8, "heads": 2, "context": 1 << 15, "vocabulary": 9}
    assert shape_of(json.dumps(sizes).encode()).context == 1 << 15
    for more in ({"context": (1 << 15) + 1, "layers": 1}, {"layers": 9}):
        with pytest.raises(ConfigError):
            shape_of(json.dumps(sizes | more).encode())


def test_characters_are_as_many_as_the_tokens_of_the_model() -> None:
    fewer = Characters(LETTERS.vocabulary[:-1])
    with pytest.raises(ConfigError):
        gpt(SHAPE, small_gpt().parameters, fewer)


def test_the_longest_prompt_is_signed_and_read_and_a_longer_one_refused() -> None:
    model = small_gpt()
    prompt = [1] * MAX_TOKENS
    model.check_tokens(prompt)
    signed = sign(statement_of(model, prompt, SamplingTerms(), 1, [1]), Account.from_key(b"\x07" * 32))
    assert read_statement(signed.encode()) == signed
    with pytest.raises(PromptTooLong):
        model.check_tokens([*prompt, 1])
    with pytest.raises(PromptTooLong):
        model.encode("a" * (MAX_TOKENS + 1))


@pytest.mark.parametrize("prompt", [[], [LETTERS.size]], ids=["nothing", "no-token"])
def test_an_answer_to_what_is_no_prompt_is_false(prompt: list[int]) -> None:
    model = small_gpt()
    with pytest.raises(FalseAnswer):
        replay(model, statement_of(model, prompt, SamplingTerms(), 1, [1]))


def test_a_statement_is_about_the_run_that_it_names() -> None:
    run, other = Address(b"\x01" * 20), Address(b"\x02" * 20)
    said = replace(statement_of(small_gpt(), [1], SamplingTerms(), 1, [1]), chain_id=5, run=run)
    check_run(said, 5, run)
    for chain_id, asked in ((6, run), (5, other), (0, NO_RUN)):
        with pytest.raises(AnotherModel):
            check_run(said, chain_id, asked)


def test_a_file_that_is_written_over_changes_no_model_that_was_read_from_it(tmp_path: Path) -> None:
    """Bad luck: the newest model is pulled or copied to where a defender of the former one has read it."""
    folder, first, other = tmp_path / "pulled", small_gpt(), small_gpt(seed=10)
    model = read_folder(write_folder(first, folder))
    newer = (write_folder(other, tmp_path / "newer") / "model.safetensors").read_bytes()
    with (folder / "model.safetensors").open("r+b") as file:
        file.write(newer)
    assert all(torch.equal(mine, was) for mine, was in zip(model.parameters, first.parameters, strict=True))
    assert model.root == first.root != read_folder(folder).root
