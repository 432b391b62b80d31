"""The dispute game as a pure state machine: table, moves, clocks, one element, and how both sides play."""
