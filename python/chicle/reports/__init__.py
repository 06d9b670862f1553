"""What is known of a synthetic table, as one page: for the steward who must decide, and for the reviewer who signs."""

from chicle.reports.run import report

__all__ = ["report"]
