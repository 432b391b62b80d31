"""What an account has in a run: its locks and when they end, what it must do by when, what it earned."""
