"""`python -m stiction` is the command `stiction`."""

import sys

from stiction.cli import main

if __name__ == "__main__":
    sys.exit(main())
