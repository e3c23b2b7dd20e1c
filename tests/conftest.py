"""What holds for all tests."""

import os

# Standard error is compared, and whether kernels are compiled depends on which tests ran before.
os.environ.setdefault("STICTION_NOTICE", "0")
