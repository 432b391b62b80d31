"""Weights as a file for people: under the module's own names, and traced back to the root that stands on chain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.protocol.errors import ConfigError, FraudError, RejectedError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, Status
from assay_ledger.index.records import RunState
from assay_ledger.index.run import Run
from assay_ledger.store.blobs import ArtifactStore
from assay_ledger.store.objects import Objects, root_of_list

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_FILE: Final = 1 << 34


class WeightsNotOnChain(FraudError):
    """The weights of a file are none that stand in this run."""

    remedy = "This file is not from this run, or it was altered: `assay model pull` fetches the model."


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters with their names; `round` is the one after whose outer step they stand, None for genesis."""

    root: Digest
    round: int | None
    is_final: bool
    names: tuple[str, ...]
    specs: tuple[TensorSpec, ...]
    tensors: tuple[bytes, ...]


def standing_roots(run: Run, state: RunState) -> list[tuple[int | None, Digest, bool]]:
    """(round, parameters' list root, final) of genesis and of every outer root that stands, oldest first."""
    found: list[tuple[int | None, Digest, bool]] = [(None, run.charter.training.parameters, True)]
    for record in state.rounds:
        for _, outer in sorted(record.outers.items()):
            if not outer.fallen:
                found.append((int(record.number), outer.parameters, Status.FINAL in outer.posters.values()))
    return found


def fetch_weights(run: Run, state: RunState, store: ArtifactStore, after: int | None = None) -> Weights:
    """The weights after a round (the last one with an outer step unless given).

    Raises RejectedError (NoSuchModel), UnavailableError when the store does not have them.
    """
    roots = [entry for entry in standing_roots(run, state) if after is None or entry[0] == after]
    if not roots:
        raise RejectedError(f"No outer step of round {after} stands.", code="NoSuchModel")
    # Of several roots of a round the final one is the model's.
    number, root, is_final = max(roots, key=lambda entry: (-1 if entry[0] is None else entry[0], entry[2]))
    specs = parameter_specs(run, store)
    tensors = Objects(store).list(root, specs)
    return Weights(root, number, is_final, parameter_names(run, store), tuple(specs), tensors)


def write_weights(path: Path, weights: Weights) -> None:
    """Writes a safetensors file. Raises ConfigError (FileNotWritable)."""
    from safetensors.torch import save

    from assay.engine.runtime.values.state_io import tensor_from_bytes
    from assay.programs.files import writing

    named = zip(weights.names, weights.specs, weights.tensors, strict=True)
    data = save({n: tensor_from_bytes(s, t) for n, s, t in named}, {"assay_root": weights.root.hex()})
    with writing(path):
        path.write_bytes(data)


def find_weights(run: Run, state: RunState, store: ArtifactStore, path: Path) -> Weights:
    """The weights of a file, once their root is found among those that stand.

    Raises ConfigError (FileUnreadable), WeightsNotOnChain.
    """
    names, specs = parameter_names(run, store), parameter_specs(run, store)
    tensors = _read(path, names, specs)
    root = root_of_list(specs, tensors)
    known = [entry for entry in standing_roots(run, state) if entry[1] == root]
    if not known:
        raise WeightsNotOnChain(
            f"The weights of {path} have the root 0x{root.hex()}, which does not stand in this run."
        )
    number, _, is_final = known[-1]
    return Weights(root, number, is_final, names, tuple(specs), tensors)


def parameter_specs(run: Run, store: ArtifactStore) -> list[TensorSpec]:
    """Types and dims of the parameters, from the step program."""
    program = Objects(store).program(run.charter.step.root)
    return [program.specs[k] for k in program.input_nodes[0]]


def parameter_names(run: Run, store: ArtifactStore) -> tuple[str, ...]:
    """The module's own names of the parameters, in order. Raises UnavailableError when the run's card is missing."""
    from assay.sponsor import cards

    count = len(parameter_specs(run, store))
    return cards.parameter_names(store, cards.read_card(store, run.address), run.charter.training.data, count)


def _read(path: Path, names: Sequence[str], specs: Sequence[TensorSpec]) -> tuple[bytes, ...]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    from assay.engine.runtime.values.dtypes import TORCH, raw_bytes

    limit = sum(s.nbytes for s in specs) + 4096 + 512 * len(specs)
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
        found = load(data) if len(data) <= limit else {}
    except (OSError, SafetensorError) as error:
        raise ConfigError(
            f"{path} cannot be read ({type(error).__name__}).", code="FileUnreadable", remedy="Name a safetensors file."
        ) from None
    fits = sorted(found) == sorted(names) and all(
        tuple(found[n].shape) == s.dims and found[n].dtype == TORCH[s.dtype] for n, s in zip(names, specs, strict=True)
    )
    if not fits:
        raise WeightsNotOnChain(f"{path} does not hold the parameters of this run's model.")
    return tuple(raw_bytes(found[name]) for name in names)
