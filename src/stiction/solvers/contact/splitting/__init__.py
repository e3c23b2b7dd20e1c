"""Normal and friction impulses in turn."""
