"""A first draft of a schema, read from the data: **not private**, for a person to review.

Before a fit may use the draft, a person replaces everything that came from the data (bounds, lists of values, edges) by
public knowledge, or confirms that it is public. In the saved file, the comment of each column says what was read.
Column types draft themselves (`chicle.columns.drafting`); this module asks them and builds the schema.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from chicle.columns import TYPES, Draft, RawColumn
from chicle.errors import SchemaError
from chicle.schema.schema import Schema

__all__ = ["draft_columns"]


def draft_columns(table: Mapping[str, pa.ChunkedArray]) -> Schema:
    """Propose a schema for the columns of a table; see `chicle.draft_schema`."""
    if not any(len(values) for values in table.values()):
        raise SchemaError("the table has no rows to draft a schema from; write it by hand, from public knowledge")
    drafts = {name: _draft(values) for name, values in table.items()}
    columns = {name: draft.column for name, draft in drafts.items()}
    comments = {name: f"read from the data: {draft.comment}" for name, draft in drafts.items()}
    return Schema(columns, reviewed=False, comments=comments)


def _draft(values: pa.ChunkedArray) -> Draft:
    """Return the column of the first type that suits these values."""
    raw = RawColumn(values)
    types = sorted(TYPES.values(), key=lambda one: one.draft_order)
    return next(draft for one in types if (draft := one.draft(raw)) is not None)
