"""Newton on the true friction cone."""
