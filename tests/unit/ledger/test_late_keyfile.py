"""Processes that sign compute no constants of pairings, and key files are written and opened all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

SIGNS = """
import sys
import assay_ledger.chain.client
from eth_account import Account
from eth_account.messages import encode_defunct
key = Account.create()
key.sign_message(encode_defunct(b"signed"))
import eth_keyfile.exceptions  # another module of it
assert not [name for name in sys.modules if name.startswith("py_ecc")]
"""

OPENS = """
document = Account.encrypt(key.key, "a password", iterations=2)
assert bytes(Account.decrypt(document, "a password")) == bytes(key.key)
import eth_keyfile
from eth_keyfile.keyfile import MAX_V4_PRIVATE_KEY
assert eth_keyfile.decode_keyfile_json(document, b"a password") == bytes(key.key)
assert {type(sys.modules[name]).__name__ for name in ("eth_keyfile", "eth_keyfile.keyfile")} == {"module"}
"""

AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    made = list(pool.map(lambda _: Account.encrypt(key.key, "a password", iterations=2), range(8)))
assert all(bytes(Account.decrypt(document, "a password")) == bytes(key.key) for document in made)
"""

ASKS = """
import assay_ledger, sys
import eth_keyfile
assert "py_ecc" not in sys.modules
assert eth_keyfile.extract_key_from_keyfile.__module__ == "eth_keyfile.keyfile"
"""

BEFORE = """
import eth_keyfile
import assay_ledger, sys
assert sys.modules["eth_keyfile"] is eth_keyfile and type(eth_keyfile).__name__ == "module"
"""


TEXTS = {"signs": SIGNS, "opens": SIGNS + OPENS, "at once": SIGNS + AT_ONCE, "asks": ASKS, "before": BEFORE}


@pytest.mark.gate_takes(3)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_key_files_are_loaded_by_who_opens_one(text: str):
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
