"""The contracts as typed Python, a module each. Written by tools/bindings.py."""
