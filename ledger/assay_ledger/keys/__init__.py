"""Keys on disk: EVM and BLS secrets, encrypted."""
