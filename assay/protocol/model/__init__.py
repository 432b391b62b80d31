"""The executable model of a run's contracts: the same rules, names and refusals, without a chain.

Chain time and randomness are arguments; nothing here does I/O. A method that refuses raises `RejectedError` whose code
is the contract's custom error, and has changed nothing.
"""
