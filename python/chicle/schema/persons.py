"""Whether a column identifies persons that have several rows, for drafts: **not private**.

Ids of persons repeat, but each only a few times. A column of texts or integers is taken for one if its name says so and
many values are there, or if its values look like ids: texts of one form with many digits, or integers that repeat far
more often than their neighbours occur, as no measured amount does.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns import RawColumn
from chicle.schema.flags import RowsAPerson

__all__ = ["is_for_persons", "is_id_of_persons", "rows_a_person"]

_PERSON = re.compile(
    r"patient|person|people|subject|member|client|customer|citizen|resident|individual|insur|student|pupil|employee|user|"
    r"participant|beneficiar|(^|_)(ssn|pid|nhs|mrn|pnr|nino)($|_)",
    re.IGNORECASE,
)
_ID = re.compile(
    r"(^|_|\b)(id|nbr|nr|key|uid|uuid|guid)($|_|\b)|(^|_)(no|num|number)$|(?-i:[a-z](Id|ID|Nr|No|Key|Number)$)|^ssn$",
    re.IGNORECASE,
)
_NO_ID = re.compile(
    r"zip|post|plz|(^|_)(count|age|score|hours)|visits|amount|price|cost|income|wage|salary|gain|loss|balance|value|"
    r"weight|wgt|year|date|diag|icd",
    re.IGNORECASE,
)

_FEWEST = 20  # persons
_SHARE = 0.05  # of rows that are different values, at least
_KEPT = 0.9


def is_for_persons(name: str) -> bool:
    """Return whether the name of a column says that it identifies persons.

    Examples
    --------
    >>> is_for_persons("patient_nbr"), is_for_persons("encounter_id")
    (True, False)
    """
    return _PERSON.search(name) is not None


def is_id_of_persons(name: str) -> bool:
    """Return whether the name of a column says that it holds ids, and that these are of persons.

    Examples
    --------
    >>> is_id_of_persons("patient_nbr"), is_id_of_persons("customer_satisfaction")
    (True, False)
    """
    return is_for_persons(name) and _ID.search(name) is not None


def rows_a_person(raw: RawColumn) -> RowsAPerson | None:
    """Return how many rows the persons of a column have; None if it does not look like one of persons' ids."""
    if not _looks_like_ids(raw):
        return None
    rows = np.sort(raw.counts.to_numpy(zero_copy_only=False))
    if rows[-1] == 1 and not is_for_persons(raw.name):
        return None
    most = int(rows[-1])
    limits = np.arange(1, most + 1)
    # The rows that a limit keeps: all of persons below it, and so many of each above.
    below = np.concatenate([[0], np.cumsum(rows)])[np.searchsorted(rows, limits, side="right")]
    kept = (below + limits * (len(rows) - np.searchsorted(rows, limits, side="right"))) / rows.sum()
    k = int(limits[np.argmax(kept >= _KEPT)])
    return RowsAPerson(
        persons=len(rows),
        median=int(np.median(rows)),
        high=int(np.quantile(rows, 0.99, method="higher")),
        most=most,
        max_records=k,
        kept=float(kept[k - 1]),
    )


def _looks_like_ids(raw: RawColumn) -> bool:
    for_persons = is_for_persons(raw.name)
    plain = raw.kind == "text" or (raw.numbers is not None and raw.whole)
    if not plain or raw.times is not None or raw.free_text or (raw.missing and not for_persons):
        return False
    if len(raw.distinct) < max(_FEWEST, _SHARE * len(raw.present)) or _NO_ID.search(raw.name):
        return False
    named = for_persons or _ID.search(raw.name) is not None
    if raw.kind == "text" or for_persons:
        return named or _of_one_form(raw.distinct)
    values, counts = np.unique(np.asarray(raw.numbers), return_counts=True)
    if values[0] < 0 or counts.max() > max(100, len(raw.present) // 100):
        return False
    return named or _repeats(values, counts)


def _of_one_form(texts: pa.Array) -> bool:
    """Return whether all texts have the same letters and digits at the same places, at least five digits."""
    forms = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"\d", "9"), r"[A-Za-z]", "A").unique()
    return len(forms) == 1 and forms[0].as_py().count("9") >= 5


def _repeats(values: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> bool:
    """Return whether integers repeat more often than their neighbours occur, and are not rounded."""
    again = np.mean(counts > 1)
    beside = np.mean(np.diff(values) == 1)
    rounded = np.sum(counts[values % 10 == 0]) / counts.sum()
    return bool(again > 2 * beside and again > 0.02 and rounded < 0.2)
