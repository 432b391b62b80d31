"""Weights as a file for people: under the module's own names, and traced back to the root that stands on chain."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.protocol.errors import ConfigError, FraudError, RejectedError, UnavailableError
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.trees.state import TrainingList
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest
from assay_ledger.index.computing import Compute
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.view import RunView
from assay_ledger.shared_file import replace_whole
from assay_ledger.store.blobs import ArtifactStore
from assay_ledger.store.objects import root_of_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from assay.sponsor.cards import Card
    from assay.training.recipes.outline import Outline

MAX_FILE: Final = 1 << 34


class WeightsNotOnChain(FraudError):
    """The weights of a file are none that stand in this run."""

    remedy = "This file is not from this run, or it was altered: `assay model pull` fetches the model."


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters with their names; `generation` counts merges, 0 being what the run started from."""

    root: Digest
    generation: int
    is_final: bool
    names: tuple[str, ...]
    specs: tuple[TensorSpec, ...]
    tensors: tuple[bytes, ...]


def standing_generations(view: RunView) -> dict[int, Digest]:
    """The parameters' list root of genesis and of every generation with a majority that was not cut, oldest first."""
    found = {}
    for generation in range(len(view.books.commitments.rounds) + 1):
        lists = view.lists(generation)
        if lists is not None and view.status(generation) is not GenerationStatus.CUT:
            found[generation] = lists.parameters
    return found


def fetch_weights(
    archive: Archive, view: RunView, names: Sequence[str], compute: Compute, generation: int | None = None
) -> Weights:
    """The weights of a generation, the newest that stands unless given.

    What nobody published is merged again by `compute`, from the newest that somebody did. Nothing is published: whoever
    looks at a model may have no right to write to its store.

    Raises RejectedError (NoSuchModel), UnavailableError when the store has neither.
    """
    standing = standing_generations(view)
    wanted = max(standing) if generation is None else generation
    if wanted not in standing:
        raise RejectedError(
            f"Generation {wanted} does not stand: it was cut, or has no majority yet.",
            code="NoSuchModel",
            remedy=f"The newest that stands is {max(standing)}.",
        )
    try:
        tensors = archive.fetch_parameters(view, wanted)
    except UnavailableError:
        tensors = archive.base(view, wanted, compute, publish=False)[0]
    specs = archive.specs(TrainingList.PARAMETERS)
    return Weights(standing[wanted], wanted, _is_final(view, wanted), tuple(names), specs, tensors)


def write_weights(path: Path, weights: Weights, outline: Outline | None = None) -> None:
    """Writes a safetensors file; outline: what it holds beside the weights. Raises ConfigError (FileNotWritable)."""
    from safetensors.torch import save

    from assay.programs.files import writing

    tensors = whole_file(weights.names, weights.specs, weights.tensors, outline)
    # Loaders of pretrained models take a file only if it says whose layout it has.
    more = {"assay_root": weights.root.hex(), "format": "pt"}
    if outline is not None and outline.tokenizer:
        more["assay_tokenizer"] = tokenizer_digest(outline)
    data = save(tensors, more)
    header, rest = _sorted_header(data)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Never in place: processes that serve or defend the former model have it mapped, and a full disk would leave
        # half of this one.
        if path.is_file() or not path.exists():
            replace_whole(path.resolve(), header, rest)
        else:
            path.write_bytes(header + rest)  # a pipe or a device


def whole_file(
    names: Sequence[str], specs: Sequence[TensorSpec], tensors: Sequence[bytes], outline: Outline | None
) -> dict[str, Tensor]:
    """Every tensor of a file that the module loads strictly, by name."""
    import torch

    from assay.engine.runtime.values.state_io import tensor_from_bytes

    found = {n: tensor_from_bytes(s, t) for n, s, t in zip(names, specs, tensors, strict=True)}
    if outline is None:
        return found
    found |= {n: found[n].to(torch.int64) for n in outline.wide}
    found |= outline.constants
    return found | {alias: found[name].clone() for alias, name in outline.tied}


def write_config(folder: Path, outline: Outline) -> Path | None:
    """Writes config.json for loaders of pretrained models, where the module has one and no other file stands there.

    Raises ConfigError (FileNotWritable).
    """
    return _write_beside(folder / "config.json", outline.config)


def write_tokenizer(folder: Path, outline: Outline) -> Path | None:
    """Writes tokenizer.json, where the run names one and no other file stands there.

    Raises ConfigError (FileNotWritable).
    """
    return _write_beside(folder / "tokenizer.json", outline.tokenizer)


def tokenizer_digest(outline: Outline) -> str:
    """The SHA-256, in hex, of the tokenizer that the model was trained with."""
    return sha256(outline.tokenizer).hexdigest()


def unproven(archive: Archive, outline: Outline) -> list[str]:
    """Buffers of the file that only the sponsor's card vouches for: their roots are no constants of the step."""
    from assay.engine.runtime.values.dtypes import PROTOCOL
    from assay.engine.runtime.values.state_io import root_of
    from assay.protocol.program.nodes import Const
    from assay.training.recipes.storage import stored

    proven = {node.root for node in archive.step.nodes if isinstance(node, Const)}
    held = {name: stored(t) for name, t in sorted(outline.constants.items())}
    return [name for name, t in held.items() if t.dtype not in PROTOCOL or root_of(t) not in proven]


def find_weights(
    archive: Archive, view: RunView, names: Sequence[str], path: Path, outline: Outline | None = None
) -> Weights:
    """The weights of a file, once their root is found among those that stand.

    Raises ConfigError (FileUnreadable), WeightsNotOnChain.
    """
    specs = archive.specs(TrainingList.PARAMETERS)
    tensors = _read(path, names, specs, outline)
    root = root_of_list(specs, tensors)
    known = [generation for generation, found in standing_generations(view).items() if found == root]
    if not known:
        raise WeightsNotOnChain(
            f"The weights of {path} have the root 0x{root.hex()}, which does not stand in this run."
        )
    return Weights(root, known[-1], _is_final(view, known[-1]), tuple(names), specs, tensors)


def parameter_names(archive: Archive, store: ArtifactStore) -> tuple[str, ...]:
    """The module's own names of the parameters, in order. Raises UnavailableError when the run's card is missing."""
    return names_and_outline(archive, store)[0]


def names_and_outline(archive: Archive, store: ArtifactStore) -> tuple[tuple[str, ...], Outline]:
    """The same, and what else a file of the model holds."""
    from assay.sponsor import cards
    from assay.sponsor.model_files import read_outline

    count, card = len(archive.specs(TrainingList.PARAMETERS)), cards.read_card(store, archive.facts.address)
    if card.preset is not None:
        return _of_preset(store, card, archive.charter.training.data, count)
    names = cards.parameter_names(store, card, archive.charter.training.data, count)
    return names, read_outline(store, card.file, names)


def _of_preset(store: ArtifactStore, card: Card, data_root: Digest, count: int) -> tuple[tuple[str, ...], Outline]:
    """The same of a preset, whose vocabulary follows from its text."""
    from assay.datasets.tokenizers import Characters
    from assay.inference.model import gpt_config
    from assay.inference.programs import GptShape
    from assay.sponsor import cards
    from assay.training.recipes.outline import Outline

    preset, corpus = cards.read_corpus(store, card, data_root)
    shape = GptShape(preset.layers, preset.width, preset.heads, preset.context, len(corpus.vocabulary))
    names = cards.checked_names(tuple(name for name, _ in shape.module().named_parameters()), count)
    return names, Outline(config=gpt_config(shape), tokenizer=Characters(corpus.vocabulary).file)


def _sorted_header(data: bytes) -> tuple[bytes, memoryview]:
    """A safetensors file's length and header with metadata by name, and what is behind: else they are in any order, and
    two files of one model have two digests."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, memoryview(data)[end:]


def _write_beside(path: Path, data: bytes) -> Path | None:
    from assay.programs.files import writing

    if not data or (path.exists() and path.read_bytes() != data):
        return None
    with writing(path):
        path.write_bytes(data)
    return path


def _is_final(view: RunView, generation: int) -> bool:
    return generation == 0 or view.status(generation) is GenerationStatus.FINAL


def _read(
    path: Path, names: Sequence[str], specs: Sequence[TensorSpec], outline: Outline | None = None
) -> tuple[bytes, ...]:
    """The bytes of the run's tensors in a file, once all that it holds is what it must. Raises as `find_weights`."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    from assay.engine.runtime.values.dtypes import TORCH, raw_bytes

    zeros = whole_file(names, specs, [s.zeros() for s in specs], outline)
    limit = sum(t.nbytes for t in zeros.values()) + 4096 + 512 * len(zeros)
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
        found = load(data) if len(data) <= limit else {}
    except (OSError, SafetensorError) as error:
        raise ConfigError(
            f"{path} cannot be read ({type(error).__name__}).", code="FileUnreadable", remedy="Name a safetensors file."
        ) from None
    fits = found.keys() == zeros.keys() and all(
        found[n].shape == t.shape and found[n].dtype == t.dtype for n, t in zeros.items()
    )
    if not fits:
        raise WeightsNotOnChain(f"{path} does not hold the parameters of this run's model.")
    tensors = tuple(raw_bytes(found[n].to(TORCH[s.dtype])) for n, s in zip(names, specs, strict=True))
    # Attack: a true root, and beside it a second copy or a buffer that is not the run's.
    for name, t in whole_file(names, specs, tensors, outline).items():
        if raw_bytes(found[name]) != raw_bytes(t):
            raise WeightsNotOnChain(f"{name} in {path} is not what this run's model has there.")
    return tensors
