"""The order-free arithmetic: binary32 on bit patterns, its roundings, the scalar machine, functions, Philox, words."""
