"""Child processes and folders that never outlive this process."""
