"""Recomputes what `assay demo --json` printed, from the chain and the store alone, and prints every difference.

    assay demo --keep ./demo --json > demo.json      (leave it running)
    python tools/recompute.py demo.json

Nothing of the project's actors, demo, index or protocol is used: calls and events are encoded here, objects are read as
files and hashed here. It is one file, so that a stranger can read all of it before running it. Of the project only the
stock PyTorch module is loaded, with the weights that the chain names.
Not recomputed, because no chain knows them: CPU and wall seconds, memory, multiplier. Exit code 1 on any difference.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eth_abi import decode, encode
from safetensors.numpy import load
from web3 import HTTPProvider, Web3

Page = dict[str, Any]

MEASURED = {"cpu_seconds", "wall_seconds", "decentralization_multiplier", "peak_pss_bytes"}
GIVEN = {"run", "rpc_url", "store"}
LOSS_TOLERANCE = 1e-4
"""Nats: sums of a different order on another machine."""

BLOCKS_PER_QUERY = 5_000
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

REF = "(uint8,uint64,uint32,uint32,address,bytes32)"
TRAINING = "(uint32,uint32,uint32,uint32,uint32,bytes32,bytes32,bytes32,bytes32,bytes32)"
TERMS = (
    f"(bytes32,address,address,address,uint64,uint64,{TRAINING},({','.join(['uint64'] * 11)}),"
    "(uint128,uint64,bool,uint128,uint128,uint128,uint128,uint128,uint128,uint128,uint128,uint32,uint32,uint32,uint32,"
    "uint32),(uint64,uint64,uint64,uint32),(uint64,uint64,uint128,uint128),(bytes32,bytes32,bytes),(bytes32,bytes32,bytes),(bytes32,bytes32,bytes),"
    "address[])"
)

EVENTS = {
    # contract, event: indexed types, other types, names in that order
    ("game", "GameOpened"): (["uint256", "bytes32", "address"], ["address", REF], "id claim challenger defender ref"),
    ("game", "Verdict"): (
        ["uint256", "bytes32", "address"],
        ["uint8", "uint8", "uint32", "uint64", "uint64", "int256", "int256"],
        "id claim loser outcome family node element term expected claimed",
    ),
    ("game", "Moved"): (["uint256", "address"], ["uint8", "uint8", "uint64"], "id mover stage turn deadline"),
    ("game", "LockTaken"): (["uint256", "bytes32"], ["uint256"] * 3, "id lock bounty burned reserved"),
    ("outers", "OuterPosted"): (
        ["uint64", "bytes32", "address"],
        ["bytes32", "bytes32", "bytes32"],
        "round root poster base parameters momentum",
    ),
    ("settlement", "WorkSettled"): (
        ["uint64", "uint32", "address"],
        ["uint8", "uint256", "uint256"],
        "round seat who status paid shares",
    ),
    ("settlement", "DutiesSettled"): (
        ["uint64", "address"],
        ["uint32", "uint256", "uint256"],
        "round who duties paid shares",
    ),
    ("revenue", "Deposited"): (["address", "address"], ["uint256", "uint256"], "token who amount week"),
    ("revenue", "Claimed"): (["address", "address"], ["uint256"], "token who amount"),
    ("vault", "Deposited"): (["address"], ["uint256"], "who amount"),
    ("vault", "Withdrawn"): (["address"], ["uint256"], "who amount"),
    ("vault", "Flushed"): ([], ["uint256"], "amount"),
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


# --- the chain


class RecordedRun:
    """One run on a chain."""

    def __init__(self, url: str, run: str) -> None:
        os.environ["NO_PROXY"] = "*"
        self.eth = Web3(HTTPProvider(url, request_kwargs={"timeout": 60})).eth
        self.run = Web3.to_checksum_address(run)
        names = ["vault", "rounds", "outers", "audit", "settlement", "game", "shares", "vesting", "revenue"]
        addresses = self.call(self.run, "modules()", [], [f"({','.join(['address'] * 9)})"])
        self.at = {n: Web3.to_checksum_address(a) for n, a in zip(names, addresses, strict=True)}
        self.terms = self.call(self.run, "terms()", [], [TERMS])
        if Web3.keccak(encode([TERMS], [self.terms])) != self.call(self.run, "run()", [], ["bytes32"]):
            raise SystemExit("the terms do not hash to the run's identity")
        self.token = Web3.to_checksum_address(self.terms[2])
        self.training = self.terms[6]

    def call(self, to: str, signature: str, arguments: list[Any], outputs: list[str]) -> Any:
        """A view function's result."""
        inputs = _split(signature[signature.index("(") + 1 : -1])
        data = Web3.keccak(text=signature)[:4] + encode(inputs, arguments)
        values = decode(outputs, bytes(self.eth.call({"to": to, "data": data})))
        return values[0] if len(values) == 1 else values

    def events(self, contract: str, name: str) -> Iterator[Page]:
        """Every event of a name, in order; `tx` is its transaction."""
        indexed, plain, names = EVENTS[contract, name]
        topic = Web3.keccak(text=f"{name}({','.join(indexed + plain)})")
        head = self.eth.block_number
        for low in range(0, head + 1, BLOCKS_PER_QUERY):
            high = min(low + BLOCKS_PER_QUERY - 1, head)
            query = {"address": self.at[contract], "fromBlock": low, "toBlock": high, "topics": [topic]}
            for log in self.eth.get_logs(query):
                values = [decode([t], bytes(raw))[0] for t, raw in zip(indexed, log["topics"][1:], strict=True)]
                values += decode(plain, bytes(log["data"]))
                yield dict(zip(names.split(), values, strict=True)) | {"tx": bytes(log["transactionHash"])}

    def gas(self, tx: bytes) -> int:
        """Gas that a transaction used."""
        return int(self.eth.get_transaction_receipt(tx)["gasUsed"])

    def selector(self, tx: bytes) -> bytes:
        """The first four bytes of a transaction's calldata."""
        return bytes(self.eth.get_transaction(tx)["input"])[:4]

    def balance(self, token: str, owner: str) -> int:
        """An ERC-20 balance."""
        return int(self.call(token, "balanceOf(address)", [owner], ["uint256"]))


def _split(types: str) -> list[str]:
    return [t for t in types.split(",") if t]


# --- the store


class Store:
    """A folder store: names that stand for digests, and objects under their SHA-256."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def objects(self, name: str) -> Iterator[bytes]:
        """Whatever was given a name, hashed."""
        for marker in sorted((self.folder / "names" / name).glob("*")):
            yield self.object(marker.name)

    def object(self, digest: str) -> bytes:
        """The bytes of a digest."""
        data = (self.folder / "objects" / digest[:2] / digest).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise SystemExit(f"the object {digest} has other bytes")
        return data

    def weights(self, root: bytes) -> list[Any]:
        """The arrays of the list with this root, from a safetensors file that hashes to it."""
        for data in self.objects(f"lists/{root.hex()}"):
            found = load(data)
            arrays = [found[name] for name in sorted(found)]
            if list_root(arrays) == root:
                return arrays
        raise SystemExit(f"the store has no list with the root {root.hex()}")


def _sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def tree(digests: list[bytes]) -> bytes:
    """The root of the protocol's tree: pairs are hashed, an odd one is promoted."""
    while len(digests) > 1:
        pairs = [_sha(b"\1", a, b) for a, b in zip(digests[::2], digests[1::2], strict=False)]
        digests = pairs + digests[len(digests) - len(digests) % 2 :]
    return digests[0] if digests else bytes(32)


def tensor_root(code: int, dims: tuple[int, ...], data: bytes) -> bytes:
    """The root of a tensor: its element type's code, dims and 1 KiB leaves."""
    leaves = [_sha(b"\0", data[i : i + 1024]) for i in range(0, len(data), 1024)]
    header = bytes((code, len(dims))) + b"".join(d.to_bytes(8, "big") for d in dims)
    return _sha(b"\2", header, tree(leaves))


def list_root(arrays: list[Any]) -> bytes:
    """The root of a list of f32 arrays."""
    roots = [tensor_root(0, a.shape, a.astype("<f4", copy=False).tobytes()) for a in arrays]
    return _sha(b"\5", len(roots).to_bytes(4, "big"), tree(roots))


# --- fields


def recompute(ledger: RecordedRun, store: Store, document: Page) -> Page:
    """Every field of the document that chain and store determine."""
    games = _games(ledger)
    fields = {
        "rounds": ledger.call(ledger.at["rounds"], "opened()", [], ["uint64"]),
        "slashed": [_slashed(ledger, g) for g in games if g["verdict"]["loser"] == g["defender"] and g["taken"]],
        "disputes": [_dispute(ledger, g) for g in games],
        "shares": {a: ledger.balance(ledger.at["shares"], a) for a in document["shares"]},
        "earned": _earned(ledger),
        "revenue": sum(e["amount"] for e in ledger.events("revenue", "Deposited")),
        "claimed": _claimed(ledger, document["claimed"]),
        "conservation_difference": _conservation(ledger),
    }
    return fields | quality(store, ledger.run, ledger.training, final_parameters(ledger))


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


def _slashed(ledger: RecordedRun, game: Page) -> Page:
    role = "solver"
    if KINDS[game["ref"][0]] == "ATTESTATION":
        attester = "(uint8,uint128,uint64,uint64,uint32)"
        code = ledger.call(ledger.at["audit"], "attesterOf(address)", [game["defender"]], [attester])[0]
        role = ("none", "verifier", "whistleblower")[code]
    return {
        "address": Web3.to_checksum_address(game["defender"]),
        "amount": game["taken"],
        "role": role,
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


def _earned(ledger: RecordedRun) -> Page:
    """Pay and wages per address that settlement named."""
    paid: dict[str, int] = {}
    for name in ("WorkSettled", "DutiesSettled"):
        for event in ledger.events("settlement", name):
            who = Web3.to_checksum_address(event["who"])
            paid[who] = paid.get(who, 0) + event["paid"]
    return paid


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


def final_parameters(ledger: RecordedRun) -> bytes:
    """The parameters' list root that the run ended in: of the latest outer step that stands, else genesis."""
    for event in sorted(ledger.events("outers", "OuterPosted"), key=lambda e: -int(e["round"])):
        arguments = [event["round"] + 1, event["root"]]
        if ledger.call(ledger.at["outers"], "isStanding(uint64,bytes32)", arguments, ["bool"]):
            return bytes(event["parameters"])
    return bytes(ledger.training[5])


# --- the model


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
    if tensor_root(4 if width == 1 else 6, (cut,), train) != training[9]:
        raise SystemExit("the text that the store holds is not the one whose root stands on chain")
    model = build_model(preset(card["preset"]), len(vocabulary))
    parameters = [store.weights(bytes(training[5])), store.weights(final)]
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


# --- comparing


def differences(document: Page, fields: Page) -> list[str]:
    """Where the document says something else than chain and store."""
    found = []
    for name, value in sorted(fields.items()):
        if name not in document:
            continue
        found += list(_compare(name, document[name], value))
    unknown = document.keys() - fields.keys() - MEASURED - GIVEN - {"cheats"}
    found += [f"{name} cannot be recomputed" for name in sorted(unknown)]
    return found + _cheats(document)


def _compare(name: str, published: Any, computed: Any) -> Iterator[str]:
    if isinstance(published, dict) and isinstance(computed, dict):
        for key in sorted(published.keys() | computed.keys()):
            yield from _compare(f"{name}.{key}", published.get(key), computed.get(key))
    elif isinstance(published, list) and isinstance(computed, list):
        if len(published) != len(computed):
            yield f"{name}: {len(published)} entries, computed {len(computed)}"
        for k, (a, b) in enumerate(zip(published, computed, strict=False)):
            yield from _compare(f"{name}[{k}]", a, b)
    elif isinstance(published, float) or isinstance(computed, float):
        close = isinstance(published, int | float) and isinstance(computed, int | float)
        if not close or not abs(published - computed) <= LOSS_TOLERANCE:
            yield f"{name}: {published}, computed {computed}"
    elif published != computed:
        yield f"{name}: {published}, computed {computed}"


def _cheats(document: Page) -> list[str]:
    """What the chain shows of the cheats: who was convicted, in what role, and how."""
    cheats, slashed = set(document["cheats"]) - {"none"}, document["slashed"]
    solvers = {e["address"] for e in slashed if e["role"] == "solver"}
    verifiers = {e["address"] for e in slashed if e["role"] == "verifier"}
    expected = len(cheats - {"lazy-verifier"}) or int("lazy-verifier" in cheats)
    found = []
    if len(solvers) != expected:
        found.append(f"cheats: {sorted(cheats)} name {expected} cheating solvers, {len(solvers)} were convicted")
    if bool(verifiers) != ("lazy-verifier" in cheats):
        found.append(f"cheats: {sorted(cheats)}, and {len(verifiers)} verifiers were convicted")
    silent = {e["address"] for e in slashed if e["kind"] == "DEFAULT" and e["role"] == "solver"}
    if len(silent) != int("silent" in cheats):
        found.append(f"cheats: {sorted(cheats)}, and {len(silent)} solvers were convicted by silence")
    return found


def main(argv: list[str]) -> int:
    """Compares a document; 1 on any difference."""
    parser = argparse.ArgumentParser(description="Recompute what a demo printed, from chain and store alone.")
    parser.add_argument("document", type=Path, help="what `assay demo --json` printed")
    parser.add_argument("--rpc-url", help="the document's own unless given")
    parser.add_argument("--store", help="the document's own unless given")
    options = parser.parse_args(argv)
    document = json.loads(options.document.read_text())
    ledger = RecordedRun(options.rpc_url or document["rpc_url"], document["run"])
    fields = recompute(ledger, Store(Path(options.store or document["store"])), document)
    found = differences(document, fields)
    for line in found:
        print(line)
    print(f"{len(fields)} fields recomputed, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
