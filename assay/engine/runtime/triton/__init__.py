"""Programs by Triton: kernels for GPUs, which its interpreter runs on any machine (docs/adr/0038-triton.md)."""
