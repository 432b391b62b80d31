"""The sponsor: a run's charter, what it starts from, its card, and how it is posted."""
