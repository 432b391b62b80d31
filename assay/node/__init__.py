"""A local chain of one's own: what moves its time, and where its coins and test tokens come from."""
