"""Executors of programs and the traces that players of a game read."""
