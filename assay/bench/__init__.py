"""What things cost and how well they train: the measurements behind `assay bench`.

Stands above everything: nothing but the command line imports it.
"""
