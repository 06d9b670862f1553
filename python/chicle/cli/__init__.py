"""The command line: from a file to a synthetic file, without writing code."""

from chicle.cli.entry import main

__all__ = ["main"]
