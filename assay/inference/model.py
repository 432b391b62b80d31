"""A language model that can be asked: parameters, tokenizer, and the program that its answers follow from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from assay.datasets.tokenizers import Tokenizer, digest_of_tokenizer, read_tokenizer, tokenizer_of
from assay.engine.compiler.lowering.registry import FIXED14, Precision
from assay.engine.runtime.values import state_io
from assay.inference.programs import GptShape, own_window_program, window_program
from assay.protocol.errors import ConfigError, UserError
from assay.protocol.program.program import Program
from assay.protocol.types import Digest
from assay_ledger.json_input import JsonRefused, parse_json

if TYPE_CHECKING:
    from assay.training.recipes.recipe import Recipe

GPT: Final = "assay_gpt"
"""What config.json calls the presets' architecture."""

WEIGHTS_FILE: Final = "model.safetensors"
CONFIG_FILE: Final = "config.json"
TOKENIZER_FILE: Final = "tokenizer.json"

MAX_TOKENS: Final = 1 << 16
"""Tokens of an answer, and of a prompt."""

MAX_CONTEXT: Final = 1 << 15
MAX_LAYERS: Final = 1 << 12

_MAX_CONFIG: Final = 1 << 20

_MAX_MASKS: Final = 1 << 33
"""Bytes of what tokens may not see: a module has as many as its context squared for each layer, in no file."""


class PromptTooLong(UserError):
    """A prompt has more tokens than are read."""

    remedy = "Give its end: a model sees no more than its context."


@dataclass(frozen=True)
class LanguageModel:
    """parameters: f32, as the run's first list has them. shape: of a preset's model; module: of any other.

    context: tokens of a window. vocabulary: symbols that logits have.
    """

    parameters: Sequence[Tensor]
    tokenizer: Tokenizer
    context: int
    vocabulary: int
    shape: GptShape | None = None
    module: nn.Module | None = None
    precision: Precision = FIXED14
    _programs: dict[int, Program] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def root(self) -> Digest:
        """The root of the list of parameters: what stands on chain."""
        return state_io.list_roots([self.parameters])[0]

    @cached_property
    def tokenizer_digest(self) -> Digest:
        """SHA-256 of the tokenizer's file."""
        return Digest(bytes.fromhex(digest_of_tokenizer(self.tokenizer.file)))

    @property
    def program(self) -> Program:
        """The forward program that statements name."""
        return self.window(1)

    def window(self, rows: int) -> Program:
        """The same for so many rows."""
        if rows not in self._programs:
            if self.shape is not None:
                made = window_program(self.shape, self.precision, rows=rows)
            else:
                assert self.module is not None
                made = own_window_program(self.module, self.context, self.precision, rows=rows)
            self._programs[rows] = made
        return self._programs[rows]

    def encode(self, text: str) -> list[int]:
        """The tokens of a prompt. Raises UserError (EmptyPrompt, PromptTooLong, UnknownCharacter)."""
        tokens = self.tokenizer.encode_all([text])[0]
        self.check_tokens(tokens)
        return tokens

    def check_tokens(self, tokens: Sequence[int]) -> None:
        """Raises UserError (EmptyPrompt, PromptTooLong, UnknownToken) for what is no prompt."""
        if not tokens:
            raise UserError(
                "The prompt has no token: the first one follows from nothing.",
                code="EmptyPrompt",
                remedy="Give at least one character.",
            )
        if len(tokens) > MAX_TOKENS:
            raise PromptTooLong(f"The prompt has {len(tokens)} tokens; {MAX_TOKENS} are the most.")
        if not all(0 <= t < self.vocabulary for t in tokens):
            raise UserError(
                f"The prompt has tokens that are none of the model's {self.vocabulary}.",
                code="UnknownToken",
                remedy="Use the tokenizer that the model was trained with.",
            )


def gpt(
    shape: GptShape, parameters: Sequence[Tensor], tokenizer: Tokenizer, precision: Precision = FIXED14
) -> LanguageModel:
    """A preset's model with these values. Raises ConfigError (ModelWrong)."""
    # Attack: sizes that no tensor has. Layers are counted before anything is made, and nothing is made of real memory.
    wanted = [tuple(p.shape) for _, p in _outline(shape, len(parameters))]
    if [tuple(p.shape) for p in parameters] != wanted or any(p.dtype is not torch.float32 for p in parameters):
        raise _wrong("its tensors are not those of its config.json")
    if tokenizer.size > shape.vocabulary:
        raise _wrong("its tokenizer has more tokens than the model")
    if tokenizer.kind == "characters" and tokenizer.size != shape.vocabulary:
        raise _wrong("its tokenizer has fewer characters than the model has tokens")
    return LanguageModel(tuple(parameters), tokenizer, shape.context, shape.vocabulary, shape, precision=precision)


def gpt_config(shape: GptShape) -> bytes:
    """config.json of a preset's model."""
    return json.dumps({"model_type": GPT} | asdict(shape), indent=2, sort_keys=True).encode()


def read_folder(folder: Path, precision: Precision = FIXED14) -> LanguageModel:
    """A preset's model from what `assay model pull` wrote. Raises ConfigError (ModelWrong), UserError."""
    try:
        with (folder / CONFIG_FILE).open("rb") as source:
            shape = shape_of(source.read(_MAX_CONFIG + 1))
    except OSError as error:
        raise _wrong(f"{CONFIG_FILE} cannot be read ({error.strerror})") from None
    tensors = read_tensors(folder)
    names = [name for name, _ in _outline(shape, len(tensors))]
    if sorted(names) != sorted(tensors):
        raise _wrong("its tensors are not those of its config.json")
    tokenizer = read_tokenizer(folder / TOKENIZER_FILE)
    return gpt(shape, [tensors[name] for name in names], tokenizer, precision)


def own_model(
    recipe: Recipe, tensors: Mapping[str, Tensor], tokenizer: bytes, context: int | None, precision: Precision = FIXED14
) -> LanguageModel:
    """A model of one's own: its recipe's module with these tensors, by name.

    context: tokens of a window, those of the recipe's windows unless given. tokenizer: its file; the recipe's own goes
    before it.

    Raises ConfigError (ModelWrong), UserError (NotALanguageModel, BadTokenizer).
    """
    width = context or (recipe.window - 1 if recipe.window else 0)
    if width < 1:
        raise _no_language_model("its recipe has no window, so nothing says how much it reads (give --context)")
    named = dict(recipe.module.named_parameters())
    if missing := [name for name in named if name not in tensors]:
        raise _wrong(f"it lacks the module's {missing[0]}")
    parameters = [tensors[name].float() for name in named]
    if any(t.shape != p.shape for t, p in zip(parameters, named.values(), strict=True)):
        raise _wrong("its tensors have other shapes than the module's")
    made = tokenizer_of(tokenizer if recipe.tokenizer is None else recipe.tokenizer)
    found = LanguageModel(parameters, made, width, 0, module=recipe.module.float(), precision=precision)
    logits = found.program.specs[found.program.output_nodes[0][0]]
    return replace(found, vocabulary=logits.dims[-1])


def shape_of(config: bytes) -> GptShape:
    """The sizes that a config.json says. Raises ConfigError (ModelWrong)."""
    try:
        document: Any = parse_json(config, max_bytes=_MAX_CONFIG)
        if document["model_type"] != GPT:
            raise _wrong(f"its architecture is {document['model_type']!r}; give --recipe package.module:factory")
        sizes = {n: document[n] for n in ("layers", "width", "heads", "context", "vocabulary")}
    except (JsonRefused, KeyError, TypeError) as error:
        raise _wrong(f"its config.json is none of a preset ({type(error).__name__})") from None
    if not all(type(v) is int and 0 < v < 1 << 20 for v in sizes.values()) or sizes["width"] % sizes["heads"]:
        raise _wrong("its config.json has sizes that no model has")
    layers, context = sizes["layers"], sizes["context"]
    if layers > MAX_LAYERS or context > MAX_CONTEXT or layers * context**2 > _MAX_MASKS:
        raise _wrong(f"its config.json has {layers} layers of a context of {context}, more than are read")
    return GptShape(**sizes)


class _ShapesAlone(TorchFunctionMode):
    """Leaves out what only changes values: on a device without any, torch imports its compiler for that, 1.7 s long."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """See TorchFunctionMode."""
        kwargs = kwargs or {}
        if func in (nn.init.normal_, Tensor.triu):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def _outline(shape: GptShape, tensors: int) -> list[tuple[str, Tensor]]:
    """Names and shapes of a preset's parameters, for so many tensors at hand. Raises ConfigError (ModelWrong)."""
    if shape.layers >= tensors:
        raise _wrong("its tensors are not those of its config.json")
    with torch.device("meta"), _ShapesAlone():
        return list(shape.module().named_parameters())


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder's model by name. Raises ConfigError (ModelWrong).

    They are copies. Attack on oneself: a file is mapped where it is loaded, and what is written into it later changes
    the model of a process that serves or defends, under the root that it had.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return {name: tensor.clone() for name, tensor in load_file(folder / WEIGHTS_FILE).items()}
    except (OSError, SafetensorError, ValueError) as error:
        raise _wrong(f"{WEIGHTS_FILE} cannot be read ({type(error).__name__})") from None


def _wrong(why: str) -> ConfigError:
    return ConfigError(
        f"The model cannot be used: {why}.",
        code="ModelWrong",
        remedy="Name a folder that `assay model pull` wrote, with model.safetensors, config.json and tokenizer.json.",
    )


def _no_language_model(why: str) -> UserError:
    return UserError(
        f"This is no language model: {why}.",
        code="NotALanguageModel",
        remedy="Give a recipe whose module maps tokens [B, T] to logits [B, T, V].",
    )
