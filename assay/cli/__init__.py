"""The `assay` command: one module per noun."""
