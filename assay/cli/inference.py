"""`assay inference`: text from a model, that anybody finds again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assay.cli.asked_model import (
    ContextOption,
    GenerationOption,
    ModelOption,
    RecipeOption,
    TierOption,
    asked_model,
    check_source,
)
from assay.cli.common import print_json
from assay.cli.options import STORED_RUN, DeviceOption, JsonOption, with_settings
from assay.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Text from a model, exact to the last bit.")

TemperatureOption = Annotated[float, typer.Option("--temperature", min=0.0, max=100.0, help="0 takes the likeliest.")]
TopKOption = Annotated[int, typer.Option("--top-k", min=0, help="Draw from so many tokens at most; 0 for all.")]


@app.callback()
def inference() -> None:
    """Each verb runs a model on this machine; heavy imports happen inside."""


@app.command(
    "generate",
    epilog='Example: assay inference generate --model pulled --prompt "The " --seed 7 --json'
    '  ->  {"text", "tokens": [...], "prompt_tokens", "model", "program", ...}',
)
@with_settings(*STORED_RUN)
def generate(
    settings: Settings,
    prompt: Annotated[str, typer.Option("--prompt", metavar="TEXT", help="What the text goes on from.")],
    model: ModelOption = None,
    generation: GenerationOption = None,
    recipe: RecipeOption = None,
    context: ContextOption = None,
    tier: TierOption = "fixed14",
    tokens: Annotated[int, typer.Option("--tokens", min=1, max=1 << 16, help="Tokens of the answer.")] = 64,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Decides what is drawn; below 2^64.")] = 0,
    temperature: TemperatureOption = 1.0,
    top_k: TopKOption = 0,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue a prompt. The same model, prompt and seed give the same text on every machine."""
    check_source(settings, model)
    asked = asked_model(settings, model, recipe, context, tier, generation)

    from assay.inference.generate import generate as answer
    from assay.inference.rows import rows_of
    from assay.inference.sampling import UNIT, SamplingTerms

    own = asked.model
    terms = SamplingTerms(seed, round(temperature * UNIT), top_k)
    asked_tokens = own.encode(prompt)
    found = answer(own, rows_of(own), asked_tokens, terms, tokens)
    text = own.tokenizer.decode(found)
    document: dict[str, Any] = {
        "text": text,
        "tokens": found,
        "prompt_tokens": asked_tokens,
        "model": "0x" + own.root.hex(),
        "program": "0x" + own.program.root.hex(),
        "tokenizer": "0x" + own.tokenizer_digest.hex(),
        "generation": asked.generation,
        "seed": seed,
        "temperature": terms.temperature / UNIT,
        "top_k": top_k,
    }
    if as_json:
        print_json(document)
    else:
        typer.echo(prompt + text)
