"""Where a model comes from: its card from the chain's events, pieces of its history done again, and differences."""
