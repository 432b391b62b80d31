"""Differential fuzzing: random programs on hostile states, by every executor that is here."""
