"""Where proofs of a beacon's rounds come from: relays of drand, a signer that everybody knows, the chain itself."""
