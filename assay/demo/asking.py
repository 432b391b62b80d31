"""What a demo's model is for: a reader pays a gateway for text, draws an answer again, and has a liar convicted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import requests

from assay.amounts import TEST_MONEY
from assay.datasets.tokenizers import Characters, read_tokenizer
from assay.demo.measured import PaidReading, ReadLie
from assay.demo.scene import OTHERS, DemoScene
from assay.demo.stage import CommandFailed
from assay.demo.timekeeper import Timekeeper
from assay.inference.model import TOKENIZER_FILE
from assay.protocol.game.state import Outcome
from assay.protocol.types import Address
from assay_ledger.processes.children import stop

READER, GATEWAY, LIAR = OTHERS
DEPOSIT: Final = TEST_MONEY.parse("10")
PRICE: Final = "0.01"
"""For each token of prompt and answer."""

PROMPT: Final = "The "
TOKENS: Final = 64
SEEDS: Final = (1, 2)
"""One answer each."""

ANSWER_LIMIT_S: Final = 60.0


def ask(scene: DemoScene) -> PaidReading:
    """Deposits, serves, asks by a relay that signs vouchers, verifies one answer, and redeems.

    Raises CommandFailed, and what commands end with.
    """
    stage, folder = scene.stage, scene.stage.folder / "asking"
    at = ["--gateway", "0x" + scene.addresses[GATEWAY].hex()]
    scene.talk("a reader deposits at a gateway, which serves the model that was just trained")
    made, _ = stage.run_all(
        [
            ["gateway", "deploy", "--key", GATEWAY],
            ["model", "pull", "--out", str(folder / "pulled" / "model.safetensors")],
        ]
    )
    contract = Address(bytes.fromhex(made["contract"][2:]))
    scene.names[contract] = "the contract of vouchers"
    kept, prompt = str(folder / "vouchers"), prompt_of(folder / "pulled" / TOKENIZER_FILE)
    deposit = ["gateway", "deposit", TEST_MONEY.show(DEPOSIT), *at, "--key", READER, "--yes"]
    words = ["gateway", "start", "--port", "0", "--price", PRICE, "--vouchers", kept, "--key", GATEWAY]
    try:
        with ThreadPoolExecutor(1) as pool:
            deposited = pool.submit(stage.run, *deposit)
            served = stage.serve(scene.processes, GATEWAY, *words)
            deposited.result()
        words = ["inference", "relay", "--gateway", str(served["url"]), "--most", TEST_MONEY.show(DEPOSIT)]
        words += ["--model", str(folder / "pulled"), "--purse", str(folder / "purse"), "--port", "0", "--key", READER]
        relay = stage.serve(scene.processes, READER, *words)
        answers = [_answer(str(relay["url"]), prompt, seed) for seed in SEEDS]
    finally:
        stop([scene.processes.pop(name) for name in (READER, GATEWAY) if name in scene.processes])
    statement = folder / "answer.json"
    statement.write_bytes(str(answers[0]["statement"]).encode())
    redeemed, verified = stage.run_all(
        [
            ["gateway", "redeem", "--from", kept, "--key", GATEWAY],
            ["inference", "verify", str(statement), "--model", str(folder / "pulled"), "--by", at[1]],
        ]
    )
    to_owners = sum(redeemed["to_owners"].values())
    paid = sum(redeemed["paid"].values()) + to_owners
    texts = [prompt + str(answer["choices"][0]["text"]) for answer in answers]
    lie = catch(scene, statement, folder / "pulled")
    return PaidReading(contract, texts, DEPOSIT, int(verified["equal"]), paid, to_owners, lie)


def catch(scene: DemoScene, statement: Path, model: Path) -> ReadLie:
    """A second gateway bonds itself and answers falsely; the reader draws the answer again, and the game decides.

    In this process, by the code that the commands call: each of some twenty would load PyTorch anew.
    """
    from assay.inference.claims import answer_terms
    from assay.inference.lies import catch_liar
    from assay.inference.model import read_folder
    from assay.inference.statement import read_statement
    from assay_ledger.deployment.answers import deploy_answers

    scene.talk("a second gateway bonds itself, and answers falsely")
    run, own = scene.run, read_folder(model)
    reader, liar = (scene.stage.keys(name) for name in (READER, LIAR))
    scene.gates = gates = deploy_answers(run, reader.account, answer_terms(own, run.charter.economics.seat_lock))
    true = read_statement(statement.read_bytes()).statement
    keeper = Timekeeper(run.chain, scene.store, run.address, frozenset())
    found = catch_liar(gates, own, liar, reader, true, keeper.jump)
    money = run.currency
    scene.say(
        f"token {found.place} of its answer is false: the reader accuses, and the contract computes it; the liar loses "
        f"({found.outcome.name}), {money.brief(found.bounty)} tokens of its bond to the reader, "
        f"{money.brief(found.burned)} burned"
    )
    return ReadLie(gates.vault.address, found.is_convicted and found.outcome is Outcome.LEAF, found.transactions)


def refund_words(scene: DemoScene, asking: PaidReading) -> list[str]:
    """The command that asks for the rest of the deposit."""
    at = ["--gateway", "0x" + scene.addresses[GATEWAY].hex()]
    return ["gateway", "refund", TEST_MONEY.show(asking.rest), *at, "--key", READER]


def withdraw_words(scene: DemoScene) -> list[str]:
    """The command that pays it out, once its delay is over."""
    return ["gateway", "withdraw", "--gateway", "0x" + scene.addresses[GATEWAY].hex(), "--key", READER]


def prompt_of(file: Path) -> str:
    """What answers go on from, in characters of the text that was trained on."""
    tokenizer = read_tokenizer(file)
    assert isinstance(tokenizer, Characters)
    known = tokenizer.vocabulary
    return PROMPT if set(PROMPT) <= set(known) else known[-1]


def _answer(url: str, prompt: str, seed: int) -> dict[str, Any]:
    """One completion, whole, as any client of OpenAI's interface asks for it."""
    body: dict[str, Any] = {"model": "assay", "prompt": prompt, "max_tokens": TOKENS, "seed": seed}
    response = requests.post(f"{url}/completions", json=body, timeout=ANSWER_LIMIT_S)
    if response.status_code != requests.codes.ok:
        raise CommandFailed(f"The relay answered {response.status_code}: {response.text[:500]}")
    document: dict[str, Any] = response.json()
    return document
