"""What roots commit to: Merkle trees, tensors, prefixes of a run, states."""
