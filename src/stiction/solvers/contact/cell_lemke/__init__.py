"""Lemke's path on contacts' cells."""
