"""The executable model of the contracts of a run (docs/adr/0033-second-round.md), a module per contract.

Chain time and randomness are arguments; nothing here does I/O. A method that refuses raises `RejectedError` whose code
is the contract's custom error, and has changed nothing.
"""
