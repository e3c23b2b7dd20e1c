"""Published experiments, one file a paper: `run`, `check` the claims, draw `figures` and `tables`."""

STUDIES = ("lloyd2004", "lacoursiere2003", "drumwright2013", "baraff1994", "model_gap", "derivatives")
