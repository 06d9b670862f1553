"""Schemas: the public declaration of a table's columns, and of constraints and combinations of several columns."""

from chicle.schema.schema import Schema

__all__ = ["Schema"]
