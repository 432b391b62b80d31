"""A run read from chain and store: events folded into records, the view of a strategy, published work."""
