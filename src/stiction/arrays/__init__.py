"""How kernels are compiled, kept, and laid out in memory; small dense algebra, and rows over runs of velocities."""
