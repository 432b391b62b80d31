"""Trainings of methods that no round of a run is: each worker keeps a state, or not all are at the same place."""
