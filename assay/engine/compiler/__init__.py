"""From a PyTorch step to a program: tracing, lowering, fusion, calibration, the cache."""
