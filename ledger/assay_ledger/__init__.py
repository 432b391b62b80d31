"""The chain: node, client, executable model of the contracts, event indexer."""

from assay_ledger.late_keyfile import put_off

put_off()
