"""Lemke's algorithm without its matrix, after Lloyd."""
