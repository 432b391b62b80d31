"""Keys on disk: secrets of accounts, encrypted; seeds and signatures that follow from them."""
