"""Values of programs as torch tensors: element types, views, bytes and roots of lists."""
