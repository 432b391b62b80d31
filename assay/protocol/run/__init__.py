"""A run's charter and what actors claim in it: claims, draws, outer steps, and whether its programs fit."""
