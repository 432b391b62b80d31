"""A signer as a process of its own: a small Web3Signer or Clef over one keystore that refuses, hangs or lies on demand.

`python -m tests.harness.signers KEYSTORE PASSWORD_FILE USER:PASSWORD` prints its port; POST /behave sets what it does.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import requests
from eth_account import Account
from eth_account.messages import encode_defunct

LOGIN = "ops:open-sesame"


class SignerProcess:
    """The process, while a block lasts."""

    def __init__(self, keystore: Path, password: Path) -> None:
        words = [sys.executable, "-m", "tests.harness.signers", str(keystore), str(password), LOGIN]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.url = f"http://{LOGIN}@127.0.0.1:{self.port}"

    def behave(self, **how: Any) -> None:
        """`refuse`: True; `hang`: seconds; `alter`: fields of what it signs; `clef`: True; `say`: a result as it is."""
        requests.post(f"http://127.0.0.1:{self.port}/behave", json=how, timeout=5).raise_for_status()

    def __enter__(self) -> SignerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()


class _Handler(BaseHTTPRequestHandler):
    account: Any = None
    login = ""
    how: ClassVar[dict[str, Any]] = {}

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/behave":
            _Handler.how = body
            self._answer(200, {})
        elif self.headers.get("Authorization") != "Basic " + base64.b64encode(self.login.encode()).decode():
            self._answer(401, {"error": {"code": -32000, "message": f"no login for {self.login}"}})
        else:
            time.sleep(self.how.get("hang", 0))
            self._answer(200, {"jsonrpc": "2.0", "id": body["id"], **self._result(body["method"], body["params"])})

    def _result(self, method: str, params: list[Any]) -> dict[str, Any]:
        clef = self.how.get("clef", False)
        if method == ("account_list" if clef else "eth_accounts"):
            return {"result": [self.account.address]}
        if self.how.get("refuse"):
            return {"error": {"code": -32000, "message": f"denied by rule, {LOGIN}"}}
        if method == ("account_signData" if clef else "eth_sign"):
            message = encode_defunct(bytes.fromhex(params[-1][2:]))
            return {"result": self.account.sign_message(message).signature.to_0x_hex()}
        if method != ("account_signTransaction" if clef else "eth_signTransaction"):
            return {"error": {"code": -32601, "message": "method not found"}}
        if "say" in self.how:
            return {"result": self.how["say"]}
        asked = {name: value for name, value in params[0].items() if name != "from"}
        account = Account.create() if self.how.get("stranger") else self.account
        raw = account.sign_transaction({**asked, **self.how.get("alter", {})}).raw_transaction.to_0x_hex()
        return {"result": {"raw": raw, "tx": {}} if clef else raw}

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main(keystore: str, password: str, login: str) -> None:
    """Serves until it is killed."""
    secret = Account.decrypt(json.loads(Path(keystore).read_text()), Path(password).read_text().strip())
    _Handler.account, _Handler.login = Account.from_key(secret), login
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
