"""Programs of one's own: a recipe is found by name, captured, written to a file, described and checked."""

from assay.programs.capture import CapturedRecipe, capture_recipe
from assay.programs.factory import load_recipe
from assay.programs.files import read_program, write_capture

__all__ = ["CapturedRecipe", "capture_recipe", "load_recipe", "read_program", "write_capture"]
