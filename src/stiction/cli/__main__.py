"""`python -m stiction.cli`, as `stiction`."""

import sys

from stiction.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
