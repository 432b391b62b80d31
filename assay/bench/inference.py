"""What exactness costs a token: text by exact programs against eager PyTorch in f32, in one alternating run.

Both sides continue the same prompts by the likeliest token and keep keys and values; the stock one writes them in
place, reads no more of its cache than is filled, and takes PyTorch's own attention. Ratios are medians over rounds in
which each side reads the prompts once and gives all tokens once; times on one thread are of processor time.

Shapes: B rows, T tokens, L blocks, N heads, D size of a head, C width, V vocabulary, S places of a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional as F

from assay.bench.step import clock_for
from assay.datasets.tokenizers import Characters
from assay.engine.runtime.executor import usable_natives
from assay.inference.model import LanguageModel, gpt
from assay.inference.programs import GptShape
from assay.inference.rows import CachedRows, TextRow
from assay.inference.sampling import largest
from assay.programs.capture import tier_of
from assay.protocol.errors import UsageError
from assay.training.initialize import initialize
from assay.training.model import Block

SHAPES: Final = {
    "gpt-4x384": GptShape(4, 384, 6, 128, 96),
    "gpt-4x128": GptShape(4, 128, 4, 64, 96),
    "gpt-2x96": GptShape(2, 96, 4, 32, 96),
}
"""Sizes of the models that `assay bench step` trains, by its names, on 96 letters."""


@dataclass(frozen=True, slots=True)
class InferenceRow:
    """One model, tier and number of rows at once. Milliseconds a token; of prompts, over all tokens of all of them.

    prompt_ratio, token_ratio: exact over eager, medians over rounds.
    """

    model: str
    tier: str
    rows: int
    prompt_ratio: float
    token_ratio: float
    prompt_ms: float
    eager_prompt_ms: float
    token_ms: float
    eager_token_ms: float
    prompt_tokens: int
    tokens: int
    rounds: int
    threads: int


class ExactText:
    """The exact side: prompts of T tokens each, then tokens one after another."""

    def __init__(self, model: LanguageModel, prompts_BT: Tensor) -> None:
        self._rows, self._prompts = CachedRows(model, len(prompts_BT)), prompts_BT.tolist()
        self._going: list[TextRow] = []

    def read(self) -> list[int]:
        """Reads all prompts anew; the likeliest token behind each."""
        for row in self._going:
            self._rows.release(row)
        begun = [self._rows.admit(prompt) for prompt in self._prompts]
        self._going = [row for row, _ in begun]
        return largest(torch.stack([logits_V for _, logits_V in begun]))

    def following(self, tokens: list[int]) -> list[int]:
        """The likeliest token behind one more of each row."""
        return largest(self._rows.advance(self._going, tokens))


class EagerText:
    """The same module by stock PyTorch."""

    def __init__(self, model: LanguageModel, prompts_BT: Tensor) -> None:
        assert model.shape is not None
        self._module, self._prompts_BT = model.shape.module(), prompts_BT.long()
        with torch.no_grad():
            for own, value in zip(self._module.parameters(), model.parameters, strict=True):
                own.copy_(value)
        self._cache = model.shape.cache(len(prompts_BT))
        self._filled = 0

    @torch.inference_mode()
    def read(self) -> list[int]:
        """See ExactText."""
        self._filled = 0
        return self._likeliest(self._prompts_BT)

    @torch.inference_mode()
    def following(self, tokens: list[int]) -> list[int]:
        """See ExactText."""
        return self._likeliest(torch.tensor(tokens)[:, None])

    def _likeliest(self, tokens_BT: Tensor) -> list[int]:
        module, (B, T), start = self._module, tokens_BT.shape, self._filled
        x_BTC = module.token(tokens_BT) + module.position[start : start + T]
        for number, block in enumerate(module.blocks):
            assert isinstance(block, Block)
            C, heads = x_BTC.shape[2], block.attention.heads
            split = block.attention.qkv(block.norm_1(x_BTC)).split(C, dim=2)
            q, k, v = (part.view(B, T, heads, C // heads).transpose(1, 2) for part in split)
            kept = self._cache[:, number]
            kept[:, 0, :, start : start + T], kept[:, 1, :, start : start + T] = k, v
            keys, values = (kept[:, side, :, : start + T] for side in (0, 1))
            mixed = F.scaled_dot_product_attention(q, keys, values, is_causal=T > 1)
            x_BTC = x_BTC + block.attention.out(mixed.transpose(1, 2).reshape(B, T, C))
            x_BTC = x_BTC + block.down(F.gelu(block.up(block.norm_2(x_BTC)), approximate="tanh"))
        self._filled += T
        found: list[int] = module.head(module.norm(x_BTC[:, -1])).argmax(1).tolist()
        return found


def measure(model: str, tier: str, rows: Sequence[int], seconds: float, *, threads: int = 1) -> list[InferenceRow]:
    """One row per number of rows at once; half of the context are prompts, the other half answers.

    Raises UsageError (UnknownModel, UnknownTier).
    """
    torch.set_num_threads(threads)
    if model not in SHAPES:
        raise UsageError(
            f"There is no model {model!r} to measure.", code="UnknownModel", remedy=f"Choose from {', '.join(SHAPES)}."
        )
    shape = SHAPES[model]
    letters = Characters("".join(map(chr, range(32, 32 + shape.vocabulary))))
    own = gpt(shape, initialize(shape.module(), 1), letters, tier_of(tier))
    return [_measured(own, model, tier, count, seconds, threads) for count in rows]


def _measured(own: LanguageModel, model: str, tier: str, count: int, seconds: float, threads: int) -> InferenceRow:
    prompt = own.context // 2
    generator = torch.Generator().manual_seed(1)
    prompts_BT = torch.randint(own.vocabulary, (count, prompt), generator=generator)
    sides: list[ExactText | EagerText] = [EagerText(own, prompts_BT), ExactText(own, prompts_BT)]
    clock, rounds = clock_for(threads), list[list[tuple[float, float]]]()
    warm = [_round(side, prompt, clock) for side in sides]
    while len(rounds) < 3 or sum(a + b for r in [warm, *rounds] for a, b in r) < seconds:
        rounds.append([_round(side, prompt, clock) for side in sides])
    read, given = count * prompt, count * prompt

    def ms(side: int, part: int, tokens: int) -> float:
        return round(median(r[side][part] for r in rounds) * 1e3 / tokens, 4)

    def ratio(part: int) -> float:
        return round(median(r[1][part] / r[0][part] for r in rounds), 3)

    return InferenceRow(
        model,
        tier,
        count,
        ratio(0),
        ratio(1),
        ms(1, 0, read),
        ms(0, 0, read),
        ms(1, 1, given),
        ms(0, 1, given),
        prompt,
        prompt,
        len(rounds),
        threads,
    )


def _round(side: ExactText | EagerText, tokens: int, clock: Any) -> tuple[float, float]:
    """Seconds for all prompts, and for so many tokens behind each."""
    start = clock()
    found = side.read()
    middle = clock()
    for _ in range(tokens):
        found = side.following(found)
    return middle - start, clock() - middle


def document(rows: Sequence[InferenceRow]) -> dict[str, Any]:
    """Rows and the machine they were measured on, as plain JSON."""
    return {
        "rows": [asdict(row) for row in rows],
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "without_kernels": usable_natives()[1],
    }
