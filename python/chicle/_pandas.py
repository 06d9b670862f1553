"""Tables of results as pandas data frames, for people who go on with them. pandas is imported only here, when asked."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chicle.errors import ParameterError

__all__ = ["data_frame"]


def data_frame(rows: Mapping[str, Any] | Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Any:  # noqa: ANN401 - pandas is no dependency
    """Return rows, or a mapping of columns, as a pandas data frame.

    Examples
    --------
    >>> data_frame([{"age": 31}, {"age": 4}])["age"].tolist()
    [31, 4]
    """
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise ParameterError("this makes a pandas data frame, and pandas is not there; pip install pandas") from None
    return pandas.DataFrame(rows if isinstance(rows, Mapping) else list(rows), columns=columns)
