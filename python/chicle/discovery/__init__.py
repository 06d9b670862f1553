"""Private discovery, with budget, of what a schema does not declare: values of open columns, and bins."""

from chicle.discovery.discovery import Discovery, purchase_of, purchases
from chicle.discovery.purchase import Purchase
from chicle.discovery.resolution import Tallies, resolve

__all__ = ["Discovery", "Purchase", "Tallies", "purchase_of", "purchases", "resolve"]
