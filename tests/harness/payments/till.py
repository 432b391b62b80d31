"""A gateway as a process: takes vouchers of lines on stdin by several threads, and answers what is on disk.

    python -m tests.harness.payments.till FOLDER

A line `ID VOUCHER` is answered by `ID served SPENT`, or `ID` and the code of the refusal. What was served is also noted
in FOLDER/served, a line each, as an answer that has left.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from assay.protocol.errors import AssayError
from assay.protocol.types import Wei
from assay_ledger.vouchers.kept import KeptVouchers
from assay_ledger.vouchers.signed import SignedVoucher, check_signature
from tests.harness.payments.kept_samples import DOMAIN, FULL, GATEWAY, request

PRICE = Wei(10)


def main(folder: Path) -> None:
    """Serve until stdin ends."""
    kept = KeptVouchers(folder, DOMAIN, GATEWAY)
    served = os.open(folder / "served", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    lock = threading.Lock()

    def answer(line: str) -> None:
        number, _, text = line.strip().partition(" ")
        try:
            signed = SignedVoucher.of_text(text)
            check_signature(signed, DOMAIN, GATEWAY)
            taken = kept.accept(signed, PRICE, request(number), FULL).result()
            said = "repeat" if taken.is_repeat else f"served {taken.spent}"
        except AssayError as error:
            said = error.code
        with lock:
            if said.startswith("served"):
                os.write(served, f"{signed.voucher.payer.hex()} {signed.voucher.amount}\n".encode())
            print(number, said, flush=True)

    print("ready", flush=True)
    with ThreadPoolExecutor(8) as pool:
        for line in sys.stdin:
            pool.submit(answer, line)
    kept.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
