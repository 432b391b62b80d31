"""The solver: stakes, trains, commits and defends its claims."""
