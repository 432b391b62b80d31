"""How servers of this project listen, and what they take of a connection."""
