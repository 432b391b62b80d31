"""What an error code means and what to do: errors of contracts by their NatSpec, our own by their definitions."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import assay
import assay_ledger
import assay_solver
import assay_verifier
import assay_whistleblower
from assay_ledger.chain import natspec
from assay_ledger.deployment.places import GOVERNOR, ROUND_CONTRACTS

STANDING_CODES: Final[dict[str, tuple[str, str]]] = {
    "Convicted": (
        "A game on one of its claims was lost, and the lock behind it is gone.",
        "Nothing takes a verdict back; `assay bundle export` writes the evidence of the game.",
    ),
    "CommittedLate": (
        "It came after the mask had closed: it is paid by its units if it stands, but it has no weight in the merge.",
        "Commit earlier: the mask closes soon after 95 % of the seats committed.",
    ),
    "NotCounted": (
        "Too few of the positions that spoke hold its update: the merge is made without it. It is paid if it stands.",
        "Publish the update before you commit, and keep the store reachable until the mask's beacon and the hold time.",
    ),
    "GroupLeftOut": (
        "Above 64 seats: the tickets of its group opened no root of its sum in time that enough of them agree on.",
        "Nothing: the solver did its part, and the work is paid if it stands.",
    ),
    "BaseCut": (
        "The generation that the work started from was cut: the work is void, unpaid, never slashed.",
        "Nothing: the next round starts from the newest generation that is not cut.",
    ),
    "NotAuditedYet": (
        "The epochs that may draw it are not over, or its base is not final.",
        "Nothing: whoever takes part settles it once they are, and anybody may.",
    ),
    "NeverSettled": (
        "The run was wound down before it was settled: nothing is paid or credited for it any more, nothing slashed.",
        "Nothing: what is staked is free once no open game holds it; `assay status` says how it is taken out.",
    ),
    "UnderAccusation": (
        "An accusation or a game of the tenure is not over; nothing of the tenure settles meanwhile.",
        "If your work is right, play the game to its end: a false accusation costs its accuser the bond.",
    ),
}
"""What may stand between work and pay, though no contract reverts with it."""


_SPEAKERS: Final[dict[str, frozenset[str]]] = {
    **{name: frozenset({contract}) for name, contract in {**ROUND_CONTRACTS, **GOVERNOR}.items()},
    "vouchers": frozenset({"Vouchers"}),
    "generations": frozenset({"Generations", "GroupedGenerations"}),
    "beacon": frozenset({"DrandSeed", "PrevrandaoSeed"}),
}
"""The contracts that may stand under a name of a run's contracts."""


@dataclass(frozen=True, slots=True)
class Code:
    """An error code, where it comes from, what it means and what to do.

    `sentences` has the contracts' own words, more than once where contracts throw it for different reasons.
    """

    name: str
    source: str
    meaning: str
    remedy: str
    sentences: tuple[natspec.Sentence, ...] = ()


def find_code(name: str) -> Code | None:
    """The code of this name, in any spelling of upper and lower case."""
    folded = {known.lower(): code for known, code in all_codes().items()}
    return folded.get(name.lower())


def event_meaning(contract: str, name: str) -> str:
    """What the module `contract`, such as "tickets", says of its event; empty where it says nothing."""
    speakers = _SPEAKERS.get(contract, frozenset())
    return next((s.notice for s in natspec.sentences("event", name) if speakers & set(s.contracts)), "")


def all_codes() -> dict[str, Code]:
    """Every code that a person can meet, by name; those of contracts as far as they are compiled."""
    found = dict(_python_codes())
    for name in natspec.names("error"):
        sentences = natspec.sentences("error", name)
        meaning = _joined([(s.notice, s.contracts) for s in sentences])
        found[name] = Code(name, "contract", meaning, _joined([(s.remedy, s.contracts) for s in sentences]), sentences)
    for name, (meaning, remedy) in STANDING_CODES.items():
        found[name] = Code(name, "standing", meaning, remedy)
    return found


def _joined(told: list[tuple[str, tuple[str, ...]]]) -> str:
    """One text of several, each with the contracts that say it; where they differ each names them."""
    speakers: dict[str, tuple[str, ...]] = {}
    for text, contracts in told:
        speakers[text] = (*speakers.get(text, ()), *contracts)
    if len(speakers) == 1:
        return told[0][0]
    return " ".join(f"{', '.join(contracts)}: {text}" for text, contracts in speakers.items())


@cache
def _python_codes() -> dict[str, Code]:
    """Codes of this program, read from its own sources: error classes, and codes named where an error is raised."""
    found: dict[str, Code] = {}
    for package in (assay, assay_ledger, assay_solver, assay_verifier, assay_whistleblower):
        for path in sorted(Path(str(package.__file__)).parent.rglob("*.py")):
            for code in _codes_in(ast.parse(path.read_text(encoding="utf-8"))):
                if code.name not in found or len(code.remedy) > len(found[code.name].remedy):
                    found[code.name] = code
    return found


def _codes_in(tree: ast.Module) -> list[Code]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any("Error" in _name(b) or _name(b) in _FAMILIES for b in node.bases):
            remedy = next((_text(s.value) for s in node.body if isinstance(s, ast.Assign) and _is_remedy(s)), "")
            if not node.name.endswith("Error") or remedy:
                found.append(Code(node.name, "assay", ast.get_docstring(node) or "", remedy))
        elif isinstance(node, ast.Call):
            words = {k.arg: _text(k.value) for k in node.keywords}
            if words.get("code") and node.args:
                found.append(Code(words["code"], "assay", _text(node.args[0]), words.get("remedy", "")))
    return found


_FAMILIES: Final = frozenset({"GameError", "BundleMalformed"})


def _is_remedy(statement: ast.Assign) -> bool:
    return any(_name(target) == "remedy" for target in statement.targets)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.AST) -> str:
    """A string as written; what is only known when it happens stands as three dots."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.IfExp):
        return _text(node.body)
    return ""
