"""The chain as actors reach it: RPC, signed transactions and their fees, a local node."""
