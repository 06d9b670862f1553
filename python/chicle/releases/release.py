"""The release of a fit: the transcript of what was released, the ledger that paid for it, and the model of it.

A release holds nothing private: it can be kept, published and sampled from any number of times at no further cost. It
is plain data and a fitted model; a load never fits again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from chicle._checks import integer
from chicle.codecs import Codec
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import DomainError, PrivacyError, SchemaError
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, estimate_total
from chicle.measurements.transcript import Transcript
from chicle.models.base import Model
from chicle.privacy.claim import Claim
from chicle.privacy.guarantee import Guarantee
from chicle.releases.artefact import IMPORTED, Contents, read_artefact, write_artefact
from chicle.releases.bounds import ErrorBound, error_bounds
from chicle.releases.exchange import as_measurements, tidy_table
from chicle.releases.imported import model_of_tables
from chicle.releases.unmeasured import distances_of
from chicle.schema import Schema
from chicle.sources import decode_parts, decode_table, read_records
from chicle.sources.frames import Form

__all__ = ["Release", "load"]

_DECODE, _RESTORE = 0xDEC0DE, 0x5E57  # separate these streams from others of the same seed


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """The public outcome of a fit.

    Attributes
    ----------
    schema
        What was declared about the table.
    transcript
        Everything that was released, over the attributes of `domain`, and every choice made from it.
    model
        The model that was fitted to it.
    ledger
        What it cost: a `Ledger`, or for `from_marginals` the `Claim` of those who made the tables.
    mechanism, parameters
        The mechanism that made it, and its parameters as plain data.
    fine_one_ways
        Noisy 1-ways of coarse columns, over the codes of the columns: they split the groups of a coarse column.
    form
        The kind of table that `sample` returns.

    Examples
    --------
    >>> import chicle, tempfile
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> release = chicle.Independent(epsilon=1, delta=1e-9).fit(census).release_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/census.chicle")
    ...     again = chicle.load(f"{folder}/census.chicle")
    >>> again.total == release.total
    True
    >>> bool((again.sample(100, seed=1)["AGE"] == release.sample(100, seed=1)["AGE"]).all())
    True
    """

    schema: Schema
    transcript: Transcript
    model: Model
    ledger: Guarantee
    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    fine_one_ways: tuple[Measurement, ...] = ()
    form: Form = field(default=Form("records"), repr=False)

    @classmethod
    def from_marginals(
        cls,
        marginals: Any,  # noqa: ANN401 - tables of several kinds
        schema: Schema,
        *,
        claim: str,
        generator: Literal["prism", "descent"] = "prism",
    ) -> Release:
        """Return a release of noisy marginals that somebody else made, to sample from and to save as any other.

        Nothing is spent. chicle cannot verify how the noise was made: the release holds a `Claim` instead of a ledger.

        Parameters
        ----------
        marginals
            A list of tables (pandas, polars or pyarrow), each with a column for each attribute of one marginal, `value`
            and `sigma`, and a row for each cell, those without records too; a bin is given by any value inside it. Or
            one table of the form that `marginals` returns. Or a list of `Measurement`. A coarse column may have a fine
            1-way too; without one, the values of its groups are drawn evenly.
        schema
            What is public about the table to make.
        claim
            The privacy of the marginals, and who claims it.
        generator
            ``"prism"`` lets the tables correct each other first; ``"descent"`` fits records to them as they are.

        Examples
        --------
        >>> schema = Schema({"sex": {"type": "categorical", "values": ["f", "m"]}, "smoker": {"type": "boolean"}})
        >>> counts = {
        ...     "sex": ["f", "f", "m", "m"], "smoker": [False, True, False, True],
        ...     "value": [412, 95, 377, 121], "sigma": [5.0] * 4,
        ... }
        >>> release = Release.from_marginals([counts], schema, claim="(1, 1e-6)-DP, by the bureau")
        >>> release.total
        1005
        >>> release.ledger
        claimed by others, not verified by chicle: (1, 1e-6)-DP, by the bureau
        >>> release.sample(seed=0).num_rows
        1005
        """
        if not isinstance(schema, Schema):
            raise SchemaError(f"schema must be a chicle.Schema, not a {type(schema).__name__}")
        schema.check_reviewed()
        schema.check_discovered()
        claimed = Claim(claim)
        codec = Codec(schema)
        measurements, fine = (tuple(found) for found in as_measurements(marginals, codec))
        if not measurements:
            raise DomainError("there are no marginals; give at least a 1-way of each attribute")
        if not all(measurement.protected for measurement in (*measurements, *fine)):
            raise PrivacyError("a measurement was made with test noise and protects nobody; leave it out")
        return cls(
            schema=schema,
            transcript=Transcript(list(measurements)),
            model=model_of_tables(codec.without_zeros(measurements), codec.domain, generator),
            ledger=claimed,
            mechanism=IMPORTED,
            parameters={"generator": generator},
            fine_one_ways=fine,
            form=Form("pyarrow"),
        )

    @cached_property
    def codec(self) -> Codec:
        """The codec that turns synthetic records into a table of the schema."""
        return Codec(self.schema)

    @property
    def domain(self) -> Domain:
        """The attributes of measurements and of the model: columns, coarse columns, combined columns."""
        return self.codec.domain

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Every table of noisy counts, over `domain`."""
        return self.transcript.measurements

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table should know."""
        return tuple(self.transcript.notes)

    def marginals(self) -> pa.Table:
        """Return everything that was released as one table: a row for each cell of each marginal.

        `marginal` numbers the measurements, `clique` names the attributes, `cell` holds the labels of a row's values,
        bins or buckets, and `codes` their codes; `value` is the noisy count and `sigma` the standard deviation of its
        noise. Fine 1-ways of coarse columns come last. Groups and functionals are left out. A release that was
        made with test noise gives a warning.
        ``pyarrow.parquet.write_table(release.marginals(), "marginals.parquet")`` keeps it for anyone, and
        `from_marginals` reads it.

        Examples
        --------
        >>> import chicle
        >>> release = chicle.Independent(epsilon=1, delta=1e-9).fit(chicle.datasets.census(5_000, d=3)).release_
        >>> release.marginals().column_names
        ['marginal', 'clique', 'cell', 'codes', 'value', 'sigma']
        >>> release.marginals().num_rows == sum(release.schema.domain.values())
        True
        """
        if not self.ledger.protected:
            warnings.warn("these marginals are NOT PRIVATE: they were made with test noise", UserWarning, stacklevel=2)
        return tidy_table(self.measurements, self.fine_one_ways, self.codec)

    @property
    def total(self) -> int:
        """The private estimate of the number of records."""
        return estimate_total(self.measurements)

    def sample(
        self,
        n: int | None = None,
        seed: int | None = None,
        *,
        trace: list[float] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Any:  # noqa: ANN401 - the kind of table that was fitted
        """Draw a synthetic table: `n` rows, by default the private estimate of their number.

        Parameters
        ----------
        n, seed
            Number of rows, and the seed that fixes the draw.
        trace
            A list to which the error after each pass is added.
        threads
            How many threads to use; all there are, if ``None``.
        progress
            Called after each pass with its number and the current error.
        """
        records, rng = self._draw(n, seed, trace=trace, threads=threads, progress=progress)
        return decode_table(records, self.codec, self.form, rng=rng)

    def sample_parts(
        self,
        n: int | None = None,
        seed: int | None = None,
        *,
        rows: int = 2**17,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[pa.Table]:
        """Draw a synthetic table as `sample` does and yield it as Arrow tables of some rows each: for large tables.

        Only the codes of all rows are in memory, mostly one byte each.

        Parameters
        ----------
        n, seed, threads, progress
            As for `sample`. Numbers and dates get other values inside their bins than from `sample`.
        rows
            Most rows of a part.

        Examples
        --------
        >>> import chicle
        >>> synth = chicle.Independent(epsilon=1, delta=1e-9).fit(chicle.datasets.census(5_000, d=6))
        >>> [len(part) for part in synth.release_.sample_parts(1_000, seed=0, rows=600)]
        [600, 400]
        """
        records, rng = self._draw(n, seed, threads=threads, progress=progress)
        yield from decode_parts(records, self.codec, self.form, rows=integer("rows", rows, 1), rng=rng)

    def _draw(
        self,
        n: int | None,
        seed: int | None,
        *,
        trace: list[float] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[Records, np.random.Generator]:
        """Return records over the schema's columns, and the generator that draws inside bins."""
        rows = self.total if n is None else integer("n", n, 0)

        def note(number: int, error: float) -> None:
            if trace is not None:
                trace.append(error)
            if progress is not None:
                progress(number, error)

        records = self.model.records(rows, seed, threads=threads, progress=note)
        restore, decode = (np.random.default_rng(None if seed is None else [seed, use]) for use in (_RESTORE, _DECODE))
        return self.codec.restore(records, self.fine_one_ways, restore), decode

    @property
    def of_columns(self) -> list[Measurement]:
        """The measurements over the columns, those of coarse columns too; without combined columns in buckets."""
        return [*self.codec.over_columns(self.measurements), *self.fine_one_ways]

    def error_bounds(
        self,
        cliques: Iterable[Iterable[str]] | None = None,
        confidence: float = 0.95,
        *,
        synthetic: Any = None,  # noqa: ANN401 - any table
        threads: int | None = None,
    ) -> list[ErrorBound]:
        """Return bounds on the errors of marginals, from the release alone: free, and safe to publish.

        `chicle.releases.bounds` explains what is claimed. Cliques that no measurement holds have bounds too where the
        transcript holds scores of them against released values, or choices of AIM as published
        (`chicle.releases.unmeasured`), and where columns are neither coarse, nor combined, nor under constraints.

        Parameters
        ----------
        cliques
            What to bound; every attribute and every pair by default.
        confidence
            The probability, over the noise, with which each bound holds.
        synthetic
            A table that was drawn from this release, or any other of its schema, to be bounded too.
        threads
            How many threads to use; all there are, if ``None``.

        Examples
        --------
        >>> import chicle
        >>> release = chicle.Prism(epsilon=1, delta=1e-9).fit(chicle.datasets.census(5_000, d=6)).release_
        >>> (bound,) = release.error_bounds([("SEX",)], synthetic=release.sample(seed=0))
        >>> 0 < bound.estimate_error <= bound.table_error, bound.distance < 0.1
        (True, True)
        """
        records = None if synthetic is None else read_records(synthetic, self.schema, synthetic=True)
        plain = not self.codec.attributes.changes and not self.schema.constraints
        return error_bounds(
            self.of_columns,
            self.schema.domain,
            cliques,
            confidence,
            synthetic=records,
            chosen=partial(distances_of, self, threads=threads) if plain else None,
            threads=threads,
        )

    def save(self, path: str | Path) -> None:
        """Write the release to one file, for `chicle.load`: JSON and plain arrays in a zip, nothing private.

        The file holds a copy of the ledger; after a load, spend on only one of the two.
        """
        held = {name: getattr(self, name) for name in Contents.__dataclass_fields__}
        write_artefact(path, Contents(**held))

    def __repr__(self) -> str:
        cells = sum(measurement.values.size for measurement in self.measurements)
        kept = f"{len(self.measurements)} measurements of {cells:,} cells"
        beside = f", {len(self.fine_one_ways)} fine 1-ways" if self.fine_one_ways else ""
        head = f"Release of {kept} over {self.domain!r}{beside}"
        return "\n".join([head, *self.notes, repr(self.ledger)])


def load(path: str | Path) -> Release:
    """Return the release that `Release.save` wrote; it gives the same records for the same seed.

    A file that is no whole release of this or an older version of chicle raises an `ArtefactError`. A release that was
    made with test noise gives a warning: it is not private. The checks find accidents, not forgeries: only load
    releases from people you trust.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> import chicle, tempfile
    >>> synth = chicle.Independent(epsilon=1, delta=1e-9).fit(chicle.datasets.census(5_000, d=6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synth.release_.save(f"{folder}/census.chicle")
    ...     table = load(f"{folder}/census.chicle").sample(1_000, seed=0)
    >>> len(table)
    1000
    """
    held = read_artefact(path)
    release = Release(**{name: getattr(held, name) for name in Contents.__dataclass_fields__})
    if not release.ledger.protected:
        warnings.warn(f"{path} is NOT PRIVATE: it was made with test noise", UserWarning, stacklevel=2)
    return release
