"""Published experiments, one file a paper: `run`, `check` the claims, `plot`."""

STUDIES = ("lacoursiere2003",)
