"""`assay demo`: a whole run on one machine, by the very commands that a person would type."""
