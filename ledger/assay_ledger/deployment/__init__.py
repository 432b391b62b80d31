"""Deploying a run's contracts, and proving what a run's contracts were created from."""
