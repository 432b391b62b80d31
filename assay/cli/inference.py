"""`assay inference`: text from a model, that anybody finds again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli import accusing, relaying
from assay.cli.asked_model import (
    ContextOption,
    GenerationOption,
    ModelOption,
    RecipeOption,
    TierOption,
    asked_model,
    check_source,
)
from assay.cli.common import parse_address, print_fields, print_json, unlock_key
from assay.cli.options import KEY, STORED_RUN, DeviceOption, JsonOption, with_settings
from assay.cli.progress import progress
from assay.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Text from a model, exact to the last bit.")

app.command("relay", epilog=relaying.EPILOG)(relaying.relay)
app.command("pledge", epilog=accusing.PLEDGE_EPILOG)(accusing.pledge)
app.command("covered", epilog=accusing.COVERED_EPILOG)(accusing.covered)
app.command("accuse", epilog=accusing.ACCUSE_EPILOG)(accusing.accuse)

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
@with_settings(*STORED_RUN, *KEY)
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
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Sign the answer with --key, and write the statement.")
    ] = None,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue a prompt. The same model, prompt and seed give the same text on every machine."""
    check_source(settings, model)
    asked = asked_model(settings, model, recipe, context, tier, generation)

    from assay.inference.generate import generate as answer
    from assay.inference.rows import rows_of
    from assay.inference.sampling import UNIT, SamplingTerms

    own, keys = asked.model, None if out is None else unlock_key(settings)
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
        "generation": None if asked.run is None else asked.run.generation,
        "seed": seed,
        "temperature": terms.temperature / UNIT,
        "top_k": top_k,
    }
    if out is not None and keys is not None:
        from assay.inference.statement import sign, statement_of
        from assay.programs.files import writing

        said = statement_of(own, asked_tokens, terms, tokens, found)
        if asked.run is not None:
            said = replace(said, chain_id=asked.run.chain_id, run=asked.run.address)
        signed = sign(said, keys.local)
        with writing(out):
            out.write_bytes(signed.encode())
        document |= {"statement": str(out), "signer": "0x" + signed.signer.hex()}
    if as_json:
        print_json(document)
    else:
        typer.echo(prompt + text)


@app.command(
    "verify",
    epilog="Example: assay inference verify answer.json --model pulled --json"
    '  ->  {"equal": true, "signer", "text", "model", ...}',
)
@with_settings(*STORED_RUN)
def verify(
    settings: Settings,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A statement that `generate --out` or a gateway gave.")],
    model: ModelOption = None,
    generation: GenerationOption = None,
    recipe: RecipeOption = None,
    context: ContextOption = None,
    tier: TierOption = "fixed14",
    by: Annotated[str | None, typer.Option("--by", metavar="ADDRESS", help="Who must have signed it.")] = None,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw a signed answer again, without a network where a folder is named: exit code 0 when it is what the model
    says, 8 when it is not, 6 when nobody signed these bytes. Of a folder nothing says which run it is of: the signed
    run is shown, and checked only against a run that is named.
    """
    from assay.inference.statement import StatementRefused
    from assay.inference.verify import check_run, replay

    signed = accusing.read_file(file)
    if by is not None and parse_address(by) != signed.signer:
        raise StatementRefused(f"The statement is signed by 0x{signed.signer.hex()}, not by {by}.")
    check_source(settings, model)
    asked = asked_model(settings, model, recipe, context, tier, generation)
    own = asked.model
    if asked.run is not None:
        check_run(signed.statement, asked.run.chain_id, asked.run.address)
    with progress("drawing the answer again"):
        replay(own, signed.statement)
    document = {"equal": True, "text": own.tokenizer.decode(signed.statement.answer)} | signed.document()
    if as_json:
        print_json(document)
    else:
        shown = ("signer", "chain_id", "run", "model", "program", "seed", "text")
        print_fields({"equal": "yes"} | {name: document[name] for name in shown})
