"""Further optimizers of `torch.optim` as pure functions, in operations that round once each."""
