"""Recomputes what `assay demo --json` printed, from the chain and the store alone, and prints every difference.

    assay demo --keep ./demo --json > demo.json      (leave it running)
    python -m tools.recompute demo.json

Nothing of the project's actors, demo, index or protocol is used: calls and events are encoded here, objects are read as
files and hashed here. It is this folder alone, so that a stranger can read all of it before running it. Of the project
only the stock PyTorch module is loaded, with the weights that the chain names. Every final base is merged again, from
the updates that the chain counts.
Not recomputed, because no chain knows them: CPU and wall seconds, memory, multiplier. Exit code 1 on any difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tools.recompute.bases import false_merges
from tools.recompute.chain import RecordedRun
from tools.recompute.comparing import differences
from tools.recompute.fields import recompute
from tools.recompute.merges import MERGES
from tools.recompute.store import Store


def main(argv: list[str]) -> int:
    """Compares a document; 1 on any difference."""
    parser = argparse.ArgumentParser(
        prog="recompute", description="Recompute what a demo printed, from chain and store alone."
    )
    parser.add_argument("document", type=Path, help="what `assay demo --json` printed")
    parser.add_argument("--rpc-url", help="the document's own unless given")
    parser.add_argument("--store", help="the document's own unless given")
    parser.add_argument("--merge", choices=MERGES, default="mean", help="the run's, as it was posted")
    parser.add_argument("--guard", action="store_true", help="the run was posted with a guard, which may keep a base")
    options = parser.parse_args(argv)
    document = json.loads(options.document.read_text())
    ledger = RecordedRun(options.rpc_url or document["rpc_url"], document["run"])
    store = Store(Path(options.store or document["store"]))
    fields = recompute(ledger, store, document)
    found = [*differences(document, fields), *false_merges(ledger, store, options.merge, guarded=options.guard)]
    for line in found:
        print(line)
    print(f"{len(fields)} fields recomputed, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
