"""What changes with what: derivatives of certified answers, and kinks, where there are none."""
