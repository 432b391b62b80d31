"""Populations of honest and dishonest strangers over many rounds: what each earns, and where cheating begins to pay."""
