"""What a function may keep or read beside its arguments: found, named with the user's line, and put back."""
