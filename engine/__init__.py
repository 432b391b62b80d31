"""Capture of PyTorch into programs, executors, kernels and traces."""
