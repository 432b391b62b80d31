"""What of a run's store is still needed, as its chain shows, and the removal of what is not."""
