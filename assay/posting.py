"""What a sponsor does: capture the programs, publish them with data and genesis, deploy the contracts, fill the escrow.

On chain stand roots only. The store holds what they promise, and a card that says which text and preset they came from,
so that anybody can capture the programs again and compare roots.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.charters import Genesis, make_charter
from assay.ledger.deploy import deploy_run, deploy_seed, deploy_token
from assay.ledger.json_input import JsonRefused, parse_json
from assay.ledger.objects import Objects, root_of_list
from assay.ledger.store import ArtifactStore, get_named
from assay.protocol.charter import ProgramRef
from assay.protocol.errors import UnavailableError
from assay.protocol.program import Program
from assay.protocol.types import Address, Digest

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount
    from torch import Tensor

    from assay.ledger.chain import Chain
    from assay.training.data import Corpus
    from assay.training.presets import Preset

MAX_CARD_BYTES: Final = 1 << 16
MAX_TEXT_BYTES: Final = 1 << 30
GENESIS_SEED: Final = 1

Talk = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that a run starts from, before anything is posted."""

    preset: Preset
    text: bytes
    corpus: Corpus
    programs: tuple[Program, Program, Program]
    parameters: tuple[Tensor, ...]
    genesis: Genesis


@dataclass(frozen=True, slots=True)
class Card:
    """Where a run's roots came from: advice for readers, checked against the charter by whoever uses it."""

    preset: str
    text: Digest
    """SHA-256 of the training text (UTF-8)."""
    first_block: int

    def encode(self) -> bytes:
        """The card as JSON."""
        return json.dumps({"preset": self.preset, "text": self.text.hex(), "first_block": self.first_block}).encode()


def prepare(preset: Preset, text: str, seed: int = GENESIS_SEED) -> Prepared:
    """Captures the three programs for a text and draws the first parameters.

    Raises UserError (EmptyData, VocabularyTooLarge), NumericsError (CannotLower).
    """
    from assay.engine.state_io import list_roots, root_of, to_lists_of_bytes
    from assay.protocol.state import TrainingList
    from assay.training.data import corpus_from_text
    from assay.training.initialize import initialize
    from assay.training.outer import blank_momentum
    from assay.training.programs import outer_program, training_program, update_program
    from assay.training.state import Scalars
    from assay.training.step import blank_state, preset_step

    corpus = corpus_from_text(text, min_tokens=8 * (preset.context + 1))
    step = preset_step(preset, len(corpus.vocabulary))
    programs = training_program(preset, corpus), update_program(preset, corpus), outer_program(preset, corpus)
    parameters = initialize(step.module, seed)
    scalars = Scalars.of(corpus.train, learning_rate=preset.learning_rate)
    roots = list_roots(blank_state(step, parameters, scalars))
    zeros = list_roots([blank_momentum(parameters)])[0]
    rate = int.from_bytes(to_lists_of_bytes([[scalars.learning_rate]])[0][0], "little")
    genesis = Genesis(
        step=ProgramRef.of(programs[0]),
        update=ProgramRef.of(programs[1]),
        outer=ProgramRef.of(programs[2]),
        parameters=roots[TrainingList.PARAMETERS],
        momentum=zeros,
        blank_optimizer=roots[TrainingList.OPTIMIZER],
        zero_update=zeros,
        data=root_of(corpus.train),
        data_length=corpus.train.numel(),
        inner_steps=preset.inner_steps,
        learning_rate=rate,
    )
    return Prepared(preset, text.encode(), corpus, programs, tuple(parameters), genesis)


def publish(store: ArtifactStore, prepared: Prepared) -> Digest:
    """Puts programs, data, text and the first lists into the store; returns the text's digest."""
    from assay.engine.state_io import spec_of, to_lists_of_bytes
    from assay.training.optimizer import AdamW
    from assay.training.step import preset_step

    objects = Objects(store)
    for program in prepared.programs:
        objects.put_program(program)
    data = prepared.corpus.train
    objects.put_tensor(spec_of(data), to_lists_of_bytes([[data]])[0][0])
    optimizer: AdamW = preset_step(prepared.preset, len(prepared.corpus.vocabulary)).optimizer
    for tensors in (list(prepared.parameters), optimizer.blank(list(prepared.parameters))):
        _put_list(objects, tensors)
    return store.put(prepared.text)


def post_run(
    chain: Chain,
    sponsor: LocalAccount,
    store: ArtifactStore,
    prepared: Prepared,
    *,
    name: str,
    rounds: int,
    pays: bool = False,
    whistle_ppm: int = 200_000,
    audit_ppm: int = 2_000_000,
    token: Address | None = None,
    talk: Talk = lambda _: None,
) -> Address:
    """Publishes and deploys a run; returns its charter's address. A test token is made unless one is given.

    Raises RejectedError where the contracts refuse the terms.
    """
    from assay.ledger.chain import address_of

    talk("publishing programs, data and genesis")
    text = publish(store, prepared)
    first_block = chain.head().number
    talk("deploying the contracts")
    charter = make_charter(
        prepared.genesis,
        name=name,
        sponsor=address_of(sponsor),
        token=deploy_token(chain, sponsor) if token is None else token,
        seed=deploy_seed(chain, sponsor),
        now=chain.head().timestamp,
        rounds=rounds,
        pays=pays,
        whistle_ppm=whistle_ppm,
        audit_ppm=audit_ppm,
    )
    run = deploy_run(chain, sponsor, charter)
    card = Card(prepared.preset.name, text, first_block)
    store.put(card.encode(), f"runs/{run.address.hex()}/card")
    return run.address


def read_card(store: ArtifactStore, run: Address) -> Card:
    """The card of a run. Raises UnavailableError (ObjectMissing, ObjectMismatch) when nobody put a readable one."""
    found: list[Card] = []

    def fits(data: bytes) -> bool:
        try:
            document = parse_json(data, max_bytes=MAX_CARD_BYTES)
            card = Card(str(document["preset"]), Digest(bytes.fromhex(document["text"])), int(document["first_block"]))
        except (JsonRefused, KeyError, TypeError, ValueError):
            return False
        found[:] = [card]
        return len(card.text) == 32

    get_named(store, f"runs/{run.hex()}/card", MAX_CARD_BYTES, fits)
    return found[0]


def read_corpus(store: ArtifactStore, card: Card, data_root: Digest) -> tuple[Preset, Corpus]:
    """Preset and corpus of a run, once the text is found to give the data root that stands on chain.

    Raises UnavailableError (CardWrong, and what the store raises), UserError (UnknownPreset, DataNotUtf8).
    """
    from assay.engine.state_io import root_of
    from assay.training.data import corpus_from_text, decode_text
    from assay.training.presets import preset

    text = decode_text(store.get(card.text, MAX_TEXT_BYTES), f"object {card.text.hex()}")
    corpus = corpus_from_text(text)
    if root_of(corpus.train) != data_root:
        raise UnavailableError(
            "The text that the run's card names is not the one whose root stands on chain.",
            code="CardWrong",
            remedy="Ask the sponsor for the text, or name another store.",
        )
    return preset(card.preset), corpus


def _put_list(objects: Objects, tensors: Sequence[Tensor]) -> Digest:
    from assay.engine.state_io import spec_of, to_lists_of_bytes

    specs = [spec_of(t) for t in tensors]
    data = to_lists_of_bytes([list(tensors)])[0]
    root = objects.put_list(specs, data)
    assert root == root_of_list(specs, data)
    return root
