"""What is trained: models, data, optimizers, rounds and their update rules, in plain PyTorch."""
