"""Kernels in Triton's language: exact arithmetic and products. Importing one needs Triton."""
