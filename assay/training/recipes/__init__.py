"""Recipes: a user's own module, loss and optimizer as a training step, and what is refused."""
