"""Evidence: one dispute in one file that a stranger replays without a chain. See docs/bundle.md."""
