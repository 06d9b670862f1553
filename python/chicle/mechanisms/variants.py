"""Mechanisms by name, for the command line and for comparisons: every class, and variants with other parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from chicle.errors import ParameterError
from chicle.mechanisms.aim import AIM
from chicle.mechanisms.base import BY_NAME, Mechanism
from chicle.mechanisms.privsyn import PrivSyn

__all__ = ["mechanism_names", "named_mechanism"]

_VARIANTS: Mapping[str, tuple[type[Mechanism], Mapping[str, Any]]] = {
    "aim-published": (AIM, {"published": True}),
    "privsyn-descent": (PrivSyn, {"generator": "descent"}),
    "privsyn-pgm": (PrivSyn, {"generator": "pgm"}),
}


def mechanism_names(*, public: bool = False) -> list[str]:
    """Return the names of all mechanisms, those that users have registered too.

    Parameters
    ----------
    public
        Whether to name those that need public data, too.

    Examples
    --------
    >>> {"prism", "aim", "aim-published"} <= set(mechanism_names())
    True
    """
    return [*(name for name, one in BY_NAME.items() if public or one.public_data != "needed"), *_VARIANTS]


def named_mechanism(name: str) -> Callable[..., Mechanism]:
    """Return the class, or the variant of one, that makes a mechanism from its parameters.

    Examples
    --------
    >>> named_mechanism("aim-published")(epsilon=1, delta=1e-9).published
    True
    """
    if name in BY_NAME:
        return BY_NAME[name]
    if name not in _VARIANTS:
        raise ParameterError(f"there is no mechanism {name!r}; known are {', '.join(mechanism_names())}")
    mechanism, parameters = _VARIANTS[name]
    return partial(mechanism, **parameters)
