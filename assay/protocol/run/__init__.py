"""A run's charter, its beacon, what actors claim in it, and whether its programs fit."""
