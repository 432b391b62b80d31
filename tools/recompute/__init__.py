"""What a demo printed, recomputed from chain and store alone: `python -m tools.recompute demo.json`."""
