"""The language model that a command asks: of a folder that was pulled, of a run, or of one's own recipe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.common import archive_of, open_blobs, open_round_run
from assay.cli.progress import moved, progress
from assay.cli.seeing import sight
from assay.protocol.errors import UsageError
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.inference.model import LanguageModel
    from assay.protocol.types import Address

ModelOption = Annotated[
    Path | None,
    typer.Option("--model", metavar="DIR", help="Folder that `assay model pull` wrote; the run's newest model if not."),
]
RecipeOption = Annotated[
    str | None,
    typer.Option("--recipe", metavar="FACTORY", help="package.module:factory of a model that is no preset."),
]
ContextOption = Annotated[
    int | None,
    typer.Option("--context", min=1, help="Tokens of a window of such a model; those of its recipe's windows."),
]
TierOption = Annotated[str, typer.Option("--tier", metavar="TIER", help="fixed8, fixed14 or fixed22.")]
GenerationOption = Annotated[
    int | None, typer.Option("--generation", min=0, help="Of the run's model; the newest that stands unless given.")
]


@dataclass(frozen=True, slots=True)
class AskedRun:
    """Where a model came from."""

    chain_id: int
    address: Address
    generation: int


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A language model, and the run that it is of; None where no run was asked."""

    model: LanguageModel
    run: AskedRun | None


def asked_model(
    settings: Settings,
    folder: Path | None,
    recipe: str | None = None,
    context: int | None = None,
    tier: str = "fixed14",
    generation: int | None = None,
) -> AskedModel:
    """The model that the options name, a run's checked against its root on chain.

    Raises UsageError (UnknownTier, RecipeMissing), ConfigError (ModelWrong, RunMissing, StoreMissing), and what reading
    a run raises.
    """
    from assay.inference import model as models
    from assay.programs.capture import tier_of
    from assay.programs.factory import load_recipe

    precision = tier_of(tier)
    own = None if recipe is None else load_recipe(recipe)
    if folder is not None:
        from assay.datasets.tokenizers import read_tokenizer

        if own is None:
            return AskedModel(models.read_folder(folder, precision), None)
        file = folder / models.TOKENIZER_FILE
        tokenizer = read_tokenizer(file).file if file.is_file() else b""
        return AskedModel(models.own_model(own, models.read_tensors(folder), tokenizer, context, precision), None)

    from assay.cli.weights import fetch_weights, names_and_outline, whole_file
    from assay.datasets.tokenizers import tokenizer_of
    from assay.training.rounds import TorchCompute

    the_run, store = open_round_run(settings), open_blobs(settings)
    archive = archive_of(the_run, store)
    with progress("fetching the weights", measure=moved(store)):
        names, outline = names_and_outline(archive, store)
        weights = fetch_weights(archive, sight(the_run, settings), names, TorchCompute(), generation)
    tensors = whole_file(names, weights.specs, weights.tensors, outline)
    if own is not None:
        found = models.own_model(own, tensors, outline.tokenizer, context, precision)
    else:
        shape = models.shape_of(outline.config)
        found = models.gpt(shape, [tensors[name] for name in names], tokenizer_of(outline.tokenizer), precision)
    return AskedModel(found, AskedRun(the_run.chain.chain_id, the_run.address, weights.generation))


def check_source(settings: Settings, folder: Path | None) -> None:
    """Raises UsageError (ModelNotNamed) where neither a folder nor a run is named."""
    if folder is None and settings.run is None:
        raise UsageError(
            "No model is named.", code="ModelNotNamed", remedy="Give --model DIR, or --run ADDRESS and --store STORE."
        )
