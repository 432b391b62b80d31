"""What a file of a module holds beside the parameters that a run merges, so that it loads strictly.

`load_state_dict(strict=True)` wants every name of the module's state: tied parameters under each of their names,
buffers that are kept with the module, integers in the module's own width. A run's program knows none of these names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn

MERGEABLE: Final = (torch.float32, torch.int32, torch.int64)
"""Element types of statistics that a merge can put in order."""

MAX_CONFIG: Final = 1 << 20
"""Bytes of a configuration."""


@dataclass(frozen=True)
class Outline:
    """What a file of the module holds that no list of the run does.

    tied: further names of tensors, each with the name that the run knows, in the module's order. wide: names of
    statistics that the run keeps as i32 and the module as int64. constants: buffers that no round changes, by name, as
    the module has them. config: the module's own configuration as JSON, for `from_pretrained`; tokenizer: the file of
    the tokenizer that the data was made with. Both are empty where there is none.
    """

    tied: tuple[tuple[str, str], ...] = ()
    wide: tuple[str, ...] = ()
    constants: Mapping[str, Tensor] = field(default_factory=dict)
    config: bytes = b""
    tokenizer: bytes = b""


def mergeable(module: nn.Module, changed: Sequence[str]) -> list[str]:
    """Those of the buffers that a step changes which a run merges: kept with the module, and numbers of 32 bits."""
    kept = {n: b for n, b in _kept_buffers(module) if b.dtype in MERGEABLE and b.numel()}
    return [n for n in changed if n in kept]


def outline_of(module: nn.Module, names: Sequence[str]) -> Outline:
    """What a strict file of this module needs beside the tensors that a run's first list names."""
    every = kept_tensors(module)
    known = {id(t): n for n, t in every if n in names}
    tied: list[tuple[str, str]] = []
    constants: dict[str, Tensor] = {}
    for name, t in every:
        if name in names:
            continue
        if id(t) in known:
            tied.append((name, known[id(t)]))
        else:
            known[id(t)] = name
            constants[name] = t.detach().clone()
    wide = tuple(n for n, t in every if n in names and t.dtype is torch.int64)
    return Outline(tuple(tied), wide, constants, configuration_of(module))


def kept_tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    """What a module's saved state holds, under every one of its names: parameters, then buffers that are kept."""
    return [*module.named_parameters(remove_duplicate=False), *_kept_buffers(module)]


def tied_places(module: nn.Module) -> list[tuple[str, str]]:
    """Further places of one tensor, each with the first name of it; a module under two names is one place."""
    first: dict[int, str] = {}
    tied: list[tuple[str, str]] = []
    for prefix, part in module.named_modules():
        for leaf, t in (*part._parameters.items(), *part._buffers.items()):
            name = f"{prefix}.{leaf}" if prefix else leaf
            if t is not None and first.setdefault(id(t), name) != name:
                tied.append((name, first[id(t)]))
    return tied


def configuration_of(module: nn.Module) -> bytes:
    """The JSON of a module's `config`, as the libraries of pretrained models write it; empty if there is none."""
    config = getattr(module, "config", None)
    as_dict = getattr(config, "to_dict", None)
    document: Any = as_dict() if callable(as_dict) else config
    if not isinstance(document, Mapping):
        return b""
    try:
        text = json.dumps(dict(document), indent=2, sort_keys=True).encode()
    except (TypeError, ValueError):
        return b""
    return text if len(text) <= MAX_CONFIG else b""


def _kept_buffers(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Buffers that are part of the module's saved state, under every one of their names."""
    for prefix, part in module.named_modules(remove_duplicate=False):
        left_out = part._non_persistent_buffers_set
        for name, buffer in part._buffers.items():
            if buffer is not None and name not in left_out:
                yield (f"{prefix}.{name}" if prefix else name), buffer
