"""Public tables for the suites, and a mechanism that is given one in every fit."""

from typing import Any

import numpy as np

import chicle
from chicle import Records, Schema
from chicle.codecs import Codec

__all__ = ["PMWPubOfSomebody", "columns_of", "public_records"]


def public_records(schema: Schema, rows: int = 400, seed: int = 0) -> Records:
    """Return rows of even codes that keep the constraints of a schema."""
    codec, rng = Codec(schema), np.random.default_rng(seed)
    even = Records({name: rng.integers(size, size=rows) for name, size in codec.domain.items()}, codec.domain)
    return codec.restore(even, [], rng)


def columns_of(records: Records, names: list[str]) -> Records:
    """Return records of some of their columns."""
    return Records({name: records[name] for name in names}, {name: records.domain[name] for name in names})


class PMWPubOfSomebody(chicle.PMWPub):
    """Fits beside a public table of its own, for suites that give none."""

    def fit(self, source: Any, schema: Any = None, **given: Any) -> Any:
        if schema is None and not isinstance(source, Records):
            return super().fit(source, schema, public=None, **given)
        declared = schema if isinstance(schema, Schema) else Schema.from_cardinalities(schema or source.domain)
        return super().fit(source, schema, public=public_records(declared), **given)
