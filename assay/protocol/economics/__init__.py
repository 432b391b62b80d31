"""What a run must promise so that cheating does not pay, and what its chain demands of it."""
