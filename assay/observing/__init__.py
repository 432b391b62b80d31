"""What a process shows of itself: metrics, health, readiness, and its log."""
