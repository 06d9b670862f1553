"""What a schema leaves to be discovered in the data, privately and with budget: values of open columns, and bins."""

from chicle.discovery.discovery import Discovery, Purchase, purchases
from chicle.discovery.resolve import resolve

__all__ = ["Discovery", "Purchase", "purchases", "resolve"]
