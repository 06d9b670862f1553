"""The command line as a module: ``python -m chicle``."""

import sys


def main() -> int:
    """Run one command; a Ctrl-C while chicle is still being imported ends it in one line, too."""
    try:
        from chicle.cli import main as run  # noqa: PLC0415 - it takes a while

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("chicle: error: stopped\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
