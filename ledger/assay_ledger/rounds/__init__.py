"""A run as its contracts' events tell it: the books, what an actor sees of them, what lies in the store."""
