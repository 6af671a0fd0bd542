"""``python -m taxofit``: the command line."""

import sys

from taxofit.cli import main

if __name__ == "__main__":
    sys.exit(main())
