"""From a model, its solvers and their links to what a run would take: time, bytes, gas, stake, income, security."""
