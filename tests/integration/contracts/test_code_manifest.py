"""The hashes that users compare are those of what these sources compile to."""

from __future__ import annotations

import json
import os

from eth_utils.crypto import keccak

from assay_ledger.chain.contract_names import READ
from assay_ledger.deployment.places import GOVERNOR, LEAVES, ROUND_CONTRACTS
from tests.harness.contracts.harness import artifact
from tests.harness.contracts.snapshots import FOLDER, RENEW

MANIFEST = FOLDER / "code.json"
NAMES = (
    *("RunDeployer", "RunCharter", *ROUND_CONTRACTS.values(), *GOVERNOR.values(), "Arbiter"),
    *(*LEAVES.values(), "PrevrandaoSeed", "DrandSeed", "Vouchers", "AnswerDeployer", "AnswerCharter", "Gateways"),
    "GroupedGenerations",
)


def test_the_manifest_names_all_but_tokens() -> None:
    assert set(NAMES) == set(READ) - {"ERC20", "TestToken"}


def test_the_manifest_names_the_code_that_these_sources_compile_to() -> None:
    hashes = {name: "0x" + keccak(artifact(name).bytecode).hex() for name in NAMES}
    if os.environ.get("ASSAY_SNAPSHOTS") == "write":
        MANIFEST.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
    kept = json.loads(MANIFEST.read_text(encoding="utf-8"))
    changed = sorted(name for name in kept.keys() | hashes.keys() if kept.get(name) != hashes.get(name))
    assert not changed, f"{MANIFEST.name} does not hold any more: {', '.join(changed)}: {RENEW}"


def test_nothing_of_the_place_of_compilation_is_in_the_code() -> None:
    """Metadata would carry hashes of paths and settings into every creation code: two builds would differ."""
    for name in NAMES:
        code = artifact(name).deployed
        assert b"ipfs" not in code and b"solc" not in code, name
