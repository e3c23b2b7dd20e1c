"""Derivatives of certified answers, and kinks, where there are none."""
