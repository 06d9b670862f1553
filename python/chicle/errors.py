"""The errors of chicle. Messages name the attribute, the rule and the fix, and never quote a private value or count."""

__all__ = [
    "ArtefactError",
    "BudgetExceeded",
    "ChicleError",
    "DomainError",
    "InfeasibleError",
    "NotFittedError",
    "ParameterError",
    "PrivacyError",
    "SchemaError",
    "explained",
]


class ChicleError(Exception):
    """Any error that chicle raises on purpose."""


class ParameterError(ChicleError, ValueError):
    """An argument that concerns neither data nor privacy, such as a number of threads, is out of range."""


class SchemaError(ChicleError, ValueError):
    """A declaration about a table's columns contradicts itself or the source."""


class DomainError(ChicleError, ValueError):
    """Attributes, cliques or codes do not fit the domain."""


class InfeasibleError(ChicleError):
    """The result would not fit the memory limit."""


class NotFittedError(ChicleError, AttributeError):
    """A mechanism must be fitted first."""


class PrivacyError(ChicleError, ValueError):
    """A privacy parameter is out of range, or a call would break the privacy guarantee."""


class BudgetExceeded(PrivacyError):  # noqa: N818 - the name says it better than an -Error
    """A release would spend more than the ledger has left; nothing was spent and nothing released."""


class ArtefactError(ChicleError):
    """A file cannot be read or written, or its content is wrong."""


def explained(error: BaseException) -> str:
    """Return an error in one line for a person, without private values.

    Examples
    --------
    >>> explained(ParameterError("threads must be at least 1"))
    'threads must be at least 1'
    >>> explained(KeyError("a private value"))
    'an unforeseen KeyError; run again with CHICLE_TRACEBACK=1 to see where, and report it'
    """
    if isinstance(error, KeyboardInterrupt):
        return "stopped"
    if isinstance(error, ChicleError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table; leave columns out or make their bins coarser"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return f"an unforeseen {type(error).__name__}; run again with CHICLE_TRACEBACK=1 to see where, and report it"
