"""Counts steps."""

STEPS = 0
