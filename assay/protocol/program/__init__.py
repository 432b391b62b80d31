"""Programs: nodes and views, their bytes, what is well-formed, what each element means, the reference executor."""
