"""Where bodies touch: gaps, Jacobian rows, friction, and the identity of a contact over time."""
