"""What a user touches: the `assay` command, its configuration and the explorer."""
