"""`python -m reverie` is the command `reverie`."""

import sys

from reverie.cli import main

if __name__ == "__main__":
    sys.exit(main())
