"""An audit from outside: neighbouring tables, many fits, and lower bounds on what they reveal. See docs/audit.md."""

from chicle.audit.finding import Finding
from chicle.audit.run import audit, find, find_bugs

__all__ = ["Finding", "audit", "find", "find_bugs"]
