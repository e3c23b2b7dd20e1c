"""Principal pivoting for laws without a cone: frictionless, viscous, no-slip."""
