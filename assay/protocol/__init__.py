"""Pure rules of the protocol: types, arithmetic, programs, commitments, the game, economics. No I/O, no clock."""
