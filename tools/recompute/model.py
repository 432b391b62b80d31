"""What training came to: the stock PyTorch module with the weights that the chain names."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from tools.recompute.chain import DATA, PARAMETERS, Page
from tools.recompute.store import Store, tensor_root


def quality(store: Store, run: str, training: tuple[Any, ...], final: bytes) -> Page:
    """Parameters, letter entropy and both validation losses."""
    import torch

    from assay.training.model import build_model
    from assay.training.presets import preset

    card = json.loads(next(store.objects(f"runs/{run[2:].lower()}/card")))
    text = store.object(card["text"]).decode()
    vocabulary = sorted(set(text))
    numbers = {symbol: number for number, symbol in enumerate(vocabulary)}
    tokens = [numbers[c] for c in text]
    cut = len(tokens) - len(tokens) // 10
    width = 1 if len(vocabulary) <= 256 else 2
    train = b"".join(t.to_bytes(width, "little") for t in tokens[:cut])
    if tensor_root(4 if width == 1 else 6, (cut,), train) != training[DATA]:
        raise SystemExit("the text that the store holds is not the one whose root stands on chain")
    model = build_model(preset(card["preset"]), len(vocabulary))
    parameters = [store.weights(bytes(training[PARAMETERS])), store.weights(final)]
    before, after = (
        _loss(torch, model, [torch.from_numpy(a.copy()) for a in arrays], tokens[cut:]) for arrays in parameters
    )
    return {
        "parameters": sum(a.size for a in parameters[0]),
        "val_loss_before": before,
        "val_loss_after": after,
        "letter_entropy": letter_entropy(tokens[:cut], tokens[cut:], len(vocabulary)),
    }


def letter_entropy(train: list[int], validation: list[int], symbols: int) -> float:
    """Nats per character of the validation split under the training split's letter frequencies plus one each."""
    counts, total = Counter(train), len(train) + symbols
    return sum(math.log(total / (counts[t] + 1)) for t in validation) / len(validation)


def _loss(torch: Any, model: Any, parameters: list[Any], tokens: list[int]) -> float:
    """Mean cross-entropy in windows of the model's context, by stock PyTorch."""
    with torch.no_grad():
        for own, value in zip(model.parameters(), parameters, strict=True):
            own.copy_(value)
        context = model.context
        count = (len(tokens) - 1) // context
        x = torch.tensor(tokens[: count * context]).view(count, context)
        y = torch.tensor(tokens[1 : count * context + 1]).view(count, context)
        total = 0.0
        for xs, ys in zip(x.split(128), y.split(128), strict=True):
            logits = model(xs)
            total += float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), ys.flatten())) * len(xs)
    return total / count
