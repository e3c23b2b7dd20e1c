"""The command `stiction`.

Results go to standard output, everything else to standard error. Exit status: 0, 1 where something was not solved, 2
for bad input, 130 after Ctrl-C. Names of laws, solvers and steppers as words exist only here.
"""

from stiction.cli.main import main

__all__ = ["main"]
