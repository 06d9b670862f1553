"""What chicle raises. Texts name the attribute, the rule and the fix, and never quote a private value or count."""

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
]


class ChicleError(Exception):
    """Any error that chicle raises on purpose."""


class ParameterError(ChicleError, ValueError):
    """An argument that is no matter of data or privacy, such as a number of threads, is out of range."""


class SchemaError(ChicleError, ValueError):
    """A declaration about a table's columns contradicts itself or the source."""


class DomainError(ChicleError, ValueError):
    """Attributes, cliques or codes do not fit the domain."""


class InfeasibleError(ChicleError):
    """What is asked for would not fit the stated memory."""


class NotFittedError(ChicleError, AttributeError):
    """A mechanism was asked for what only `fit` makes."""


class PrivacyError(ChicleError, ValueError):
    """A privacy parameter is out of range, or something would break the privacy promise."""


class BudgetExceeded(PrivacyError):  # noqa: N818 - the name says it better than an -Error
    """A release would spend more than the ledger has left; nothing was spent and nothing released."""


class ArtefactError(ChicleError):
    """A saved file is not what it should be."""
