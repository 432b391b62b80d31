"""`make device`: what a machine computes and how fast, from a bare checkout and torch alone."""
