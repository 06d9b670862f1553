"""What is public about a table: its columns, what holds of several of them, and how tables become records and back."""

from chicle.schema.schema import Schema

__all__ = ["Schema"]
