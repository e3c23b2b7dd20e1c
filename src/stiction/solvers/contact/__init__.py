"""Solvers of contact problems: see README.md for who knows whom."""
