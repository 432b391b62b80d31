"""`--start-from` and `--resume`: what a run starts from, as a sponsor names it, read before anything is captured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.protocol.errors import UsageError
from assay.protocol.rounds.terms import GenerationStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from assay.protocol.trees.tensors import TensorSpec
    from assay.sponsor.starting import StartValues
    from assay_ledger.chain.client import Chain
    from assay_ledger.rounds.view import RunView
    from assay_ledger.store.blobs import BlobStore

RUN_AT: Final = re.compile(r"(0x[0-9a-fA-F]{40})(?:@(\d{1,8}))?")


def check_start(start_from: str | None, resume: str | None) -> None:
    """Whether what was typed names one start. Raises UsageError (OptionsClash, StartInvalid)."""
    if start_from is not None and resume is not None:
        raise UsageError(
            "--start-from and --resume name two starts.",
            code="OptionsClash",
            remedy="Give --resume for another run's momentum too, --start-from for the weights alone.",
        )
    if resume is not None and not RUN_AT.fullmatch(resume):
        raise UsageError(
            f"{resume!r} names no run: only runs have a momentum that another one can go on with.",
            code="StartInvalid",
            remedy="Give --resume RUN or RUN@GENERATION, or --start-from a file.",
        )
    if start_from is not None and not RUN_AT.fullmatch(start_from) and not Path(start_from).exists():
        raise UsageError(
            f"{start_from!r} is neither a file nor a folder, nor a run's address.",
            code="StartInvalid",
            remedy="Give --start-from FILE.safetensors, a folder that holds one, RUN or RUN@GENERATION.",
        )


def read_wanted(start_from: str | None, resume: str | None, chain: Chain, store: BlobStore) -> StartValues | None:
    """What a run starts from; a run's checkpoint is checked against its root on chain.

    Raises what `read_start` and `start_of_run` raise.
    """
    from assay.sponsor.starting import read_start

    text = start_from if resume is None else resume
    if text is None:
        return None
    named = RUN_AT.fullmatch(text)
    if named is None:
        return read_start(Path(text))
    generation = None if named[2] is None else int(named[2])
    return start_of_run(chain, store, named[1], generation, with_momentum=resume is not None)


def start_of_run(
    chain: Chain, store: BlobStore, address: str, generation: int | None, *, with_momentum: bool
) -> StartValues:
    """The weights of a generation of another run on this chain, the newest final one unless given.

    with_momentum: with the outer momentum that its next round would have gone on with.

    Raises RejectedError (NotARun, NoSuchModel), UnavailableError when the store has too little of it.
    """
    from assay.cli.common import archive_of, run_at
    from assay.cli.seeing import sight
    from assay.cli.weights import fetch_weights, names_and_outline, standing_generations, whole_file
    from assay.protocol.types import Address
    from assay.sponsor.cards import read_card, read_corpus
    from assay.sponsor.sponsor_words import StartWords
    from assay.sponsor.starting import StartValues
    from assay.training.rounds import TorchCompute

    run = run_at(chain, Address(bytes.fromhex(address[2:])))
    archive, view = archive_of(run, store), sight(run)
    names, outline = names_and_outline(archive, store)
    compute = TorchCompute()
    wanted = newest_final(view) if generation is None else generation
    weights = fetch_weights(archive, view, names, compute, wanted)
    momentum: dict[str, Tensor] = {}
    if with_momentum and wanted in standing_generations(view):
        momentum = _named(names, weights.specs, archive.base(view, wanted, compute, publish=False)[1])
    card = read_card(store, run.address)
    letters = "" if card.preset is None else read_corpus(store, card, archive.charter.training.data)[1].vocabulary
    state = "" if weights.is_final else ", which is not final: it may yet be cut"
    source = f"generation {wanted} of run {address}{state}"
    said = StartWords((), chain.chain_id, run.address, wanted, with_momentum)
    return StartValues(whole_file(names, weights.specs, weights.tensors, outline), source, momentum, letters, said)


def newest_final(view: RunView) -> int:
    """The newest generation that nothing can refute any more."""
    generations = range(1, len(view.books.commitments.rounds) + 1)
    return max((g for g in generations if view.status(g) is GenerationStatus.FINAL), default=0)


def _named(names: Sequence[str], specs: Sequence[TensorSpec], tensors: Sequence[bytes]) -> dict[str, Tensor]:
    from assay.engine.runtime.values.state_io import tensor_from_bytes

    return {n: tensor_from_bytes(s, t) for n, s, t in zip(names, specs, tensors, strict=True)}
