"""What the contracts say of their errors and events: NatSpec, as the compiler wrote it beside the code.

A sentence stands once, at the declaration in contracts/; refusals, `assay explain` and the explorer read it here.
`@notice` says when an error is thrown or an event emitted, `@dev` why, `@custom:remedy` what to do about an error, and
`@param` what each value is and in which unit. tools/check_layout.py refuses a declaration without them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from eth_utils.abi import abi_to_signature

from assay.protocol.errors import ConfigError
from assay_ledger.chain.artifacts import Artifact, artifacts_dir, load_artifact
from assay_ledger.chain.contract_names import MET


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is said of one error or event, and the contracts that say it in the same words.

    `values` has name and meaning, with its unit, of each value that comes with it; `remedy` is empty for events.
    """

    name: str
    signature: str
    contracts: tuple[str, ...]
    notice: str
    reason: str
    remedy: str
    values: tuple[tuple[str, str], ...]


def sentences(kind: str, name: str) -> tuple[Sentence, ...]:
    """All that is said of the errors (`kind` "error") or events ("event") of this name.

    Contracts may throw one name for different reasons. Nothing is said where nothing is compiled.
    """
    return _all(kind).get(name, ())


def names(kind: str) -> tuple[str, ...]:
    """Every error or event that one of the compiled contracts explains."""
    return tuple(sorted(_all(kind)))


def _all(kind: str) -> dict[str, tuple[Sentence, ...]]:
    return _read(kind, artifacts_dir())


@cache
def _read(kind: str, _folder: Path) -> dict[str, tuple[Sentence, ...]]:
    """By name, read once from each folder that artifacts are taken from."""
    speakers: dict[Sentence, tuple[str, ...]] = {}
    for contract in MET:
        with suppress(ConfigError):
            for sentence in _of(load_artifact(contract), kind):
                speakers[sentence] = (*speakers.get(sentence, ()), contract)
    by_name: dict[str, tuple[Sentence, ...]] = {}
    for sentence, contracts in speakers.items():
        by_name[sentence.name] = (*by_name.get(sentence.name, ()), replace(sentence, contracts=contracts))
    return by_name


def _of(artifact: Artifact, kind: str) -> Iterator[Sentence]:
    """The explained errors or events of one contract, without its name; each of those that share a signature."""
    output = json.loads(artifact.metadata)["output"]
    users, developers = (output[doc].get(f"{kind}s", {}) for doc in ("userdoc", "devdoc"))
    for entry in (e for e in artifact.abi if e["type"] == kind):
        signature = abi_to_signature(entry)  # type: ignore[arg-type]
        notices, details = _listed(users.get(signature)), _listed(developers.get(signature))
        # What a library of others declares comes without a notice; what has no values, with nothing for developers.
        details = details or [{} for _ in notices]
        for notice, detail in zip(notices, details, strict=bool(notices)):
            meanings = detail.get("params", {})
            # Of two declarations with one signature each explains its own values.
            if meanings.keys() == {i["name"] for i in entry["inputs"]}:
                values = tuple((i["name"], meanings[i["name"]]) for i in entry["inputs"])
                remedy = detail.get("custom:remedy", "")
                yield Sentence(
                    entry["name"], signature, (), notice["notice"], detail.get("details", ""), remedy, values
                )


def _listed(found: Any) -> list[dict[str, Any]]:
    """The compiler gives a list for errors and a single entry for events."""
    return found if isinstance(found, list) else [] if found is None else [found]
