"""Sources: private tables, and one operation on all of their rows, `Source.reduce`."""

from chicle.sources.read import check_table, decode_parts, decode_table, limit_remarks, open_source, read_records
from chicle.sources.source import Source
from chicle.sources.tasks import Task

__all__ = [
    "Source",
    "Task",
    "check_table",
    "decode_parts",
    "decode_table",
    "limit_remarks",
    "open_source",
    "read_records",
]
