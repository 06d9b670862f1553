"""What a fit leaves: noisy measurements, the ledger that paid for them, and how to make records of them.

A release holds nothing private: it can be kept, shown and sampled from again and again at no further cost. It is pure
data; what makes records is rebuilt from the measurements and the public options of the mechanism.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from chicle._checks import integer
from chicle.counting.records import Records
from chicle.domain import Clique
from chicle.errors import ArtefactError, ChicleError, DomainError, PrivacyError, SchemaError
from chicle.measurements.measurement import Measurement, estimate_total
from chicle.privacy.ledger import Ledger
from chicle.privacy.stated import StatedLedger
from chicle.releases.artefact import ELSEWHERE, Contents, read_artefact, write_artefact
from chicle.releases.bounds import Distance, ErrorBound, error_bounds
from chicle.releases.exchange import as_measurements, tidy_table
from chicle.schema import Schema
from chicle.sources.frames import Form

__all__ = ["Generator", "Note", "Release", "generator_of", "load", "rebuild", "singles_of"]

Note: TypeAlias = Callable[[int, float], None]
"""Called after each pass with its number and the current error."""

_DECODE, _RESTORE = 0xDEC0DE, 0x5E57  # what tells these streams from others of the same seed


class Generator(ABC):
    """What makes records of the measurements of a release; nothing in it is private."""

    @abstractmethod
    def records(self, n: int, seed: int | None, *, note: Note, threads: int | None = None) -> Records:
        """Make `n` records; the seed fixes them, whatever the number of threads."""

    def distances(self, cliques: Sequence[Clique], *, threads: int | None = None) -> list[Distance | None]:
        """Return what is known of cliques that no measurement holds, by how measurements were chosen; else None."""
        del threads
        return [None] * len(cliques)


Rebuild: TypeAlias = Callable[[Schema, Sequence[Measurement], Mapping[str, Any]], Generator]

_REBUILD: dict[str, Rebuild] = {}


def generator_of(mechanism: str) -> Callable[[Rebuild], Rebuild]:
    """Register how the generator of a mechanism is built from a schema, measurements and public options."""

    def register(rebuild: Rebuild) -> Rebuild:
        _REBUILD[mechanism] = rebuild
        return rebuild

    return register


def rebuild(
    mechanism: str, schema: Schema, measurements: Sequence[Measurement], options: Mapping[str, Any]
) -> Generator:
    """Return the generator of a mechanism."""
    return _REBUILD[mechanism](schema, measurements, options)


def singles_of(schema: Schema, measurements: Sequence[Measurement]) -> tuple[list[Measurement], list[Measurement]]:
    """Return the leading 1-ways, one of each attribute in domain order, and the measurements that follow them."""
    size = len(schema.domain)
    one_ways = list(measurements[:size])
    if [one_way.clique for one_way in one_ways] != [(name,) for name in schema.domain]:
        raise DomainError("a release begins with a 1-way of each attribute, in the order of the schema")
    if any(one_way.coarsening for one_way in one_ways):
        raise DomainError("the 1-ways of a release are not in buckets")
    return one_ways, list(measurements[size:])


@dataclass(frozen=True, eq=False)
class Release:
    """The public outcome of a fit.

    Attributes
    ----------
    schema
        What was declared about the table.
    measurements
        Everything that was released: noisy counts with their sigma.
    ledger
        What it cost.
    mechanism, options
        What made it, and the public options that its records depend on.
    notes
        What a reader of the table should know.
    fine
        Noisy 1-ways of columns that are coarse among the measurements.

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
    measurements: tuple[Measurement, ...]
    ledger: Ledger
    mechanism: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    fine: tuple[Measurement, ...] = ()
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
        """Return a release of noisy marginals from elsewhere, to sample from and to save as any other.

        Nothing is spent, and nothing is known of how the noise was made: the ledger says whose claim it is.

        Parameters
        ----------
        marginals
            A list of tables (pandas, polars or pyarrow), each with a column for each attribute of one marginal, `value`
            and `sigma`, and a row for each cell, those without records too; of bins any value inside will do. Or one
            table of the form that `marginals` gives. Or a list of `Measurement`. A coarse column may have a fine 1-way
            too; without one, the values of its groups are drawn evenly.
        schema
            What is public about the table that is to be made.
        claim
            Which privacy the marginals have, and who says so.
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
        stated elsewhere, not by chicle: (1, 1e-6)-DP, by the bureau
        >>> release.sample(seed=0).num_rows
        1005
        """
        if not isinstance(schema, Schema):
            raise SchemaError(f"schema must be a chicle.Schema, not a {type(schema).__name__}")
        schema.check_reviewed()
        schema.check_discovered()
        ledger = StatedLedger(claim)
        measurements, fine = (tuple(found) for found in as_measurements(marginals, schema))
        if not measurements:
            raise DomainError("there are no marginals; give at least a 1-way of each attribute")
        if not all(measurement.private for measurement in (*measurements, *fine)):
            raise PrivacyError("a measurement was made with test noise and protects nobody; leave it out")
        note = f"Privacy as {ledger!r}"
        options = {"generator": generator}
        release = cls(schema, measurements, ledger, ELSEWHERE, options, (note,), fine, Form("pyarrow"))
        release.prepare()
        return release

    def marginals(self) -> pa.Table:
        """Return everything that was released as one table: a row for each cell of each marginal.

        `marginal` numbers the measurements, `clique` names the attributes, `cell` says in words which values, bins or
        buckets a row stands for, and `codes` which codes; `value` is the noisy count and `sigma` the standard deviation
        of its noise. Fine 1-ways of coarse columns come last.
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
        return tidy_table(self.measurements, self.fine, self.schema)

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
        progress: Note | None = None,
    ) -> Any:  # noqa: ANN401 - the kind of table that was fitted
        """Draw a synthetic table: `n` rows, by default as many as the private estimate says.

        Parameters
        ----------
        n, seed
            Number of rows, and what fixes the draw.
        trace
            A list to which the error after each pass is added.
        threads
            How many threads to use; all there are, if ``None``.
        progress
            Called after each pass of the generator with its number and the current error.
        """
        records, rng = self._draw(n, seed, trace=trace, threads=threads, progress=progress)
        return self.schema.decode(records, self.form, rng=rng)

    def sample_parts(
        self,
        n: int | None = None,
        seed: int | None = None,
        *,
        rows: int = 2**17,
        threads: int | None = None,
        progress: Note | None = None,
    ) -> Iterator[pa.Table]:
        """Draw a synthetic table as `sample` does and give it in Arrow tables of so many rows: for large ones.

        Only the codes of all rows are in memory, one byte each for most.

        Parameters
        ----------
        n, seed, threads, progress
            As for `sample`. Numbers and dates are drawn elsewhere inside their bins.
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
        yield from self.schema.decode_parts(records, self.form, rows=integer("rows", rows, 1), rng=rng)

    def _draw(
        self,
        n: int | None,
        seed: int | None,
        *,
        trace: list[float] | None = None,
        threads: int | None = None,
        progress: Note | None = None,
    ) -> tuple[Records, np.random.Generator]:
        """Return records over the schema's columns, and what draws inside bins."""
        rows = self.total if n is None else integer("n", n, 0)

        def note(number: int, error: float) -> None:
            if trace is not None:
                trace.append(error)
            if progress is not None:
                progress(number, error)

        records = self._generator.records(rows, seed, note=note, threads=threads)
        restore, decode = (np.random.default_rng(None if seed is None else [seed, use]) for use in (_RESTORE, _DECODE))
        return self.schema.joint.restore(records, self.fine, restore), decode

    @property
    def of_columns(self) -> list[Measurement]:
        """The measurements as they tell of columns, fine 1-ways among them; but for combined columns in buckets."""
        return [*self.schema.joint.over_columns(self.measurements), *self.fine]

    def error_bounds(
        self,
        cliques: Iterable[Iterable[str]] | None = None,
        confidence: float = 0.95,
        *,
        synthetic: Any = None,  # noqa: ANN401 - any table
        threads: int | None = None,
    ) -> list[ErrorBound]:
        """Return how far marginals may be off at most, told by the release alone: free, and safe to publish.

        `chicle.releases.bounds` says what is claimed and what is not. Of cliques that no measurement holds something is
        known
        where the mechanism was AIM, and columns are neither coarse, nor combined, nor under constraints.

        Parameters
        ----------
        cliques
            What to bound; every attribute and every pair by default.
        confidence
            With what probability, over the noise, each bound is to hold.
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
        records = None if synthetic is None else self.schema.of_synthetic().encode(synthetic)
        plain = not self.schema.recoding.changes and not self.schema.joint.constraints
        return error_bounds(
            self.of_columns,
            self.schema.domain,
            cliques,
            confidence,
            synthetic=records,
            chosen=partial(self._generator.distances, threads=threads) if plain else None,
            threads=threads,
        )

    def save(self, path: str | Path) -> None:
        """Write the release to one file, for `chicle.load`: JSON and plain arrays in a zip, nothing private.

        The ledger in the file is a record of what was spent; go on spending on one of the two only.
        """
        told = Contents(
            self.schema, self.measurements, self.ledger, self.mechanism, self.options, self.notes, self.fine, self.form
        )
        write_artefact(path, told)

    def prepare(self) -> None:
        """Build what makes the records now, and not when the first sample is asked for."""
        _ = self._generator

    @cached_property
    def _generator(self) -> Generator:
        targets = self.schema.joint.without_zeros(self.measurements)
        return rebuild(self.mechanism, self.schema.model, targets, self.options)

    def __repr__(self) -> str:
        cells = sum(measurement.values.size for measurement in self.measurements)
        kept = f"{len(self.measurements)} measurements of {cells:,} cells"
        beside = f", {len(self.fine)} fine 1-ways" if self.fine else ""
        head = f"Release of {kept} over {self.schema.model.domain!r}{beside}"
        return "\n".join([head, *self.notes, repr(self.ledger)])


def load(path: str | Path) -> Release:
    """Return the release that `Release.save` wrote; it gives the same records for the same seed.

    What is not a whole release of this or an older version of chicle is refused with an `ArtefactError`. A release that
    was made with test noise gives a warning: it is not private. The checks find accidents, not forgers: load releases
    from those you trust to have made them as the ledger says.

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
    told = read_artefact(path)
    if told.mechanism not in _REBUILD:
        known = ", ".join(sorted(_REBUILD))
        raise ArtefactError(
            f"{path} was made by the mechanism {told.mechanism!r}, unknown here ({known} are known); upgrade chicle"
        )
    release = Release(
        told.schema,
        told.measurements,
        told.ledger,
        told.mechanism,
        told.options,
        notes=told.notes,
        fine=told.fine,
        form=told.form,
    )
    try:
        release.prepare()
    except (ChicleError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArtefactError(
            f"{path} is damaged: its measurements and options do not fit together ({error}); make or copy it again"
        ) from error
    if not release.ledger.private:
        warnings.warn(f"{path} is NOT PRIVATE: it was made with test noise", UserWarning, stacklevel=2)
    return release
