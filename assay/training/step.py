"""One whole training step as a pure function: draw a batch, forward, loss, backward, optimizer.

Any `torch.nn.Module` that maps a batch of tokens to logits can be trained; all else that influences the step is in the
state.

Shapes: B windows in a batch, T tokens of context, W = T + 1 tokens in a window, V symbols. Parameters, gradients and
moments have the shapes that the module gives its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.func import functional_call

from assay.engine import ops
from assay.training.model import build_model, next_token_loss
from assay.training.optimizer import AdamW, Optimizer
from assay.training.presets import Preset
from assay.training.schedules import RoundWarmup
from assay.training.state import Scalars, TensorLists

BATCH_STREAM = 0
"""Stream of `random` from which batch rows are drawn; modules with dropout use others."""

TargetLoss = Callable[[Tensor, Tensor], Tensor]


def draw_batch(scalars: Scalars, batch: int, context: int) -> Tensor:
    """Token windows of the shard, i32 [B, W].

    Row b starts at shard_start + mulhi_u32(word b, shard_length - context): no rejection, bias at most N / 2^32.
    """
    words_B = ops.random_words(scalars.key, scalars.step, BATCH_STREAM, batch)
    starts_B = scalars.shard_start + ops.mulhi_u32(words_B, scalars.shard_length - context)
    offsets_W = torch.arange(context + 1, dtype=torch.int32)
    return ops.take(scalars.data, starts_B[:, None] + offsets_W).to(torch.int32)


@dataclass(frozen=True)
class TrainingStep:
    """What one step does: (parameters, optimizer, scalars) to the same lists one step later.

    module: its parameters give names and shapes only. loss: (logits [B, T, V], targets [B, T]) to f32 []. warmup: of
    the learning rate in every round.
    """

    module: nn.Module
    batch: int
    context: int
    loss: TargetLoss = next_token_loss
    optimizer: Optimizer = field(default_factory=AdamW)
    warmup: RoundWarmup | None = None

    @property
    def names(self) -> list[str]:
        """Names of the parameters, in the order of the first list."""
        return [name for name, _ in self.module.named_parameters()]

    def loss_of(self, parameters: Sequence[Tensor], tokens_BW: Tensor) -> Tensor:
        """The loss, f32 [], on token windows i32 [B, W]."""
        named = dict(zip(self.names, parameters, strict=True))
        logits_BTV = functional_call(self.module, named, (tokens_BW[:, :-1],))
        return self.loss(logits_BTV, tokens_BW[:, 1:])

    def gradients(self, parameters: Sequence[Tensor], tokens_BW: Tensor) -> list[Tensor]:
        """The gradient of the loss for each parameter."""
        leaves = [p.detach().requires_grad_() for p in parameters]
        with torch.enable_grad():
            return list(torch.autograd.grad(self.loss_of(leaves, tokens_BW), leaves))

    def drawn_gradients(self, parameters: Sequence[Tensor], scalars: Sequence[Tensor]) -> list[Tensor]:
        """The same on the batch that these scalars draw."""
        return self.gradients(parameters, draw_batch(Scalars.from_list(scalars), self.batch, self.context))

    def __call__(
        self, parameters: Sequence[Tensor], optimizer: Sequence[Tensor], scalars: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The state one step later."""
        now = Scalars.from_list(scalars)
        gradients = self.drawn_gradients(parameters, scalars)
        rate = now.learning_rate
        if self.warmup is not None:
            rate = rate * self.warmup.factor(now.step, now.round)
        updated, moments = self.optimizer.update(parameters, gradients, optimizer, rate)
        return updated, moments, now.advanced().to_list()


def preset_step(preset: Preset, vocabulary: int, *, restarts: bool = False) -> TrainingStep:
    """The training step of a preset for this many symbols; restarts: moments are zero when a round begins."""
    return TrainingStep(
        build_model(preset, vocabulary),
        preset.batch,
        preset.context,
        optimizer=AdamW(weight_decay=preset.weight_decay),
        warmup=RoundWarmup.usual(preset.inner_steps) if restarts else None,
    )


def initial_state(step: TrainingStep, parameters: Sequence[Tensor], scalars: Scalars) -> TensorLists:
    """The state of a newcomer: these parameters, zero moments."""
    return list(parameters), step.optimizer.zero_init(parameters), scalars.to_list()
