"""The fields of the document that chain and store determine."""

from __future__ import annotations

from web3 import Web3

from tools.recompute.bases import final_generations, generation
from tools.recompute.chain import Page, RecordedRun
from tools.recompute.model import quality
from tools.recompute.money import fines, money
from tools.recompute.store import Store

KINDS = {1: "INTERVAL", 2: "UPDATE", 3: "OUTER", 4: "ATTESTATION"}
OUTCOMES = {1: "LEAF", 2: "DEFAULT"}
FAMILIES = {
    0: "input",
    1: "const",
    2: "map",
    3: "rowexp",
    4: "max",
    5: "dot",
    6: "sum",
    7: "gather",
    8: "scatter_sum",
    9: "rank",
    10: "random",
    11: "output",
}

MOVES_DOWN = {
    Web3.keccak(text=signature)[:4]
    for signature in (
        "bisectDigests(uint256,uint256,bytes32[])",
        "selectSubtree(uint256,uint256,bytes32[])",
        "selectElement(uint256,uint256,bytes,bytes,(uint8,uint64[],bytes,bytes32[],bytes32[])[])",
        "selectPart(uint256,uint256,int256[])",
        "selectList(uint256,uint256,bytes32[])",
        "proveTerm(uint256,bytes,(uint8,uint64[],bytes,bytes32[],bytes32[])[])",
        "proveRoot(uint256,bytes,bytes32[],bytes)",
    )
}
"""Selectors of a challenger's moves: each goes one level down, a proof the last one."""


def recompute(ledger: RecordedRun, store: Store, document: Page) -> Page:
    """Every field of the document that chain and store determine."""
    games, final = _games(ledger), final_generations(ledger)
    fields = {
        "rounds": len(list(ledger.events("commitments", "RoundBegan"))),
        "final_generations": len(final) - 1,
        "epochs": ledger.call(ledger.at["duties"], "newest()", [], ["uint24", "uint48"])[0] + 1,
        "findings": len(list(ledger.events("attestations", "Attested"))),
        "fined": fines(ledger),
        "slashed": [_slashed(g) for g in games if g["verdict"]["loser"] == g["defender"] and g["taken"]],
        "disputes": [_dispute(ledger, g) for g in games],
        "shares": {a: ledger.balance(ledger.at["shares"], a) for a in document["shares"]},
        "revenue": sum(e["amount"] for e in ledger.events("revenue", "Deposited")),
        "claimed": _claimed(ledger, document["claimed"]),
        "conservation_difference": _conservation(ledger),
    }
    fields |= money(ledger, document["deposited"])
    parameters = generation(ledger, final[-1])["parameters"]
    # Of the card only what it says about the weights: the rest is prose about these very events.
    fields["card"] = document["card"] | {
        "run": ledger.run.lower(),
        "newest_final": final[-1],
        "parameters": "0x" + parameters.hex(),
    }
    return fields | quality(store, ledger.run, ledger.training, parameters)


def _games(ledger: RecordedRun) -> list[Page]:
    """Games that are over, by number, with verdict, moves and lock."""
    games = {g["id"]: g | {"moves": [], "taken": 0} for g in ledger.events("game", "GameOpened")}
    for move in ledger.events("game", "Moved"):
        games[move["id"]]["moves"].append(move)
    for taken in ledger.events("game", "LockTaken"):
        games[taken["id"]]["taken"] = taken["bounty"] + taken["burned"] + taken["reserved"]
    for verdict in ledger.events("game", "Verdict"):
        games[verdict["id"]]["verdict"] = verdict
    return [g for _, g in sorted(games.items()) if "verdict" in g]


def _slashed(game: Page) -> Page:
    return {
        "address": Web3.to_checksum_address(game["defender"]),
        "amount": game["taken"],
        "role": "auditor" if KINDS[game["ref"][0]] == "ATTESTATION" else "solver",
        "claim": "0x" + game["claim"].hex(),
        "kind": OUTCOMES[game["verdict"]["outcome"]],
        "leaf_tx": "0x" + game["verdict"]["tx"].hex(),
    }


def _dispute(ledger: RecordedRun, game: Page) -> Page:
    verdict = game["verdict"]
    hashes = list(dict.fromkeys([game["tx"], *(m["tx"] for m in game["moves"]), verdict["tx"]]))
    family = verdict["family"]
    return {
        "claim": "0x" + game["claim"].hex(),
        "kind": KINDS[game["ref"][0]],
        "loser": Web3.to_checksum_address(verdict["loser"]),
        "levels": sum(ledger.selector(tx) in MOVES_DOWN for tx in hashes),
        "leaf_family": FAMILIES.get(family),
        "transactions": len(hashes),
        "gas_total": sum(ledger.gas(tx) for tx in hashes),
        "gas_leaf": ledger.gas(verdict["tx"]),
        "ended_by": OUTCOMES[verdict["outcome"]],
        "verdict_tx": "0x" + verdict["tx"].hex(),
    }


def _claimed(ledger: RecordedRun, asked: Page) -> Page:
    """Revenue paid out per address; those asked for, and others who claimed."""
    claimed = dict.fromkeys(asked, 0)
    for event in ledger.events("revenue", "Claimed"):
        who = Web3.to_checksum_address(event["who"])
        claimed[who] = claimed.get(who, 0) + event["amount"]
    return claimed


def _conservation(ledger: RecordedRun) -> int:
    """Tokens that vault and revenue hold beyond what came in and did not go out; the vault's own books must agree."""

    def total(contract: str, name: str) -> int:
        return sum(int(e["amount"]) for e in ledger.events(contract, name))

    vault = total("vault", "Deposited") - total("vault", "Withdrawn") - total("vault", "Flushed")
    books = sum(ledger.call(ledger.at["vault"], "totals()", [], ["uint256"] * 4))
    revenue = total("revenue", "Deposited") - total("revenue", "Claimed")
    held = ledger.balance(ledger.token, ledger.at["vault"]) + ledger.balance(ledger.token, ledger.at["revenue"])
    return held - vault - revenue + abs(books - vault)
