"""The command line as a module: ``python -m chicle``."""

import sys

from chicle.cli import main

if __name__ == "__main__":
    sys.exit(main())
