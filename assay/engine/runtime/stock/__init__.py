"""Nodes by stock torch: gathers, maps, reductions, the scalar machine on whole tensors."""
