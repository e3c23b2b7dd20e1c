"""Complementarity problems: one algorithm a file."""
