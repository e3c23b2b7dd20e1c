"""What moves: scenes over MuJoCo models, and the numbers of a step."""
