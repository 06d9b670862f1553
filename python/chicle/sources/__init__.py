"""Private tables to read: frames, files, batches; whatever comes in batches of Arrow columns can be counted."""

from chicle.sources.source import Source

__all__ = ["Source"]
