"""The chain: node, client, executable model of the contracts, event indexer."""
