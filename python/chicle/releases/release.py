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
import numpy.typing as npt
import pyarrow as pa

from chicle._checks import check_seed, integer
from chicle._html import card
from chicle.analyses import Coefficients
from chicle.codecs import Codec
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import DomainError, ParameterError, PrivacyError, SchemaError
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, estimate_total, total_sigma
from chicle.measurements.persons import PersonRows
from chicle.measurements.transcript import Transcript
from chicle.models.base import Model
from chicle.partition.model import PartitionedModel
from chicle.plans import SHARD_ROWS, shards
from chicle.privacy.claim import Claim
from chicle.privacy.guarantee import Guarantee
from chicle.privacy.strength import weakness
from chicle.query import Query
from chicle.releases.answers import Answer, Question, answer
from chicle.releases.artefact import IMPORTED, Contents, read_artefact, write_artefact
from chicle.releases.bounds import ErrorBound, error_bounds
from chicle.releases.conditional import Drawn, rows_given, rows_where
from chicle.releases.draws import Draws
from chicle.releases.exchange import as_measurements, tidy_table
from chicle.releases.imported import model_of_tables
from chicle.releases.settling import settle, steady_one_ways
from chicle.releases.table_answers import answer_query
from chicle.releases.unmeasured import distances_of
from chicle.schema import Schema
from chicle.sources import decode_parts, decode_table, read_records
from chicle.sources.engines.spark import spark_frame
from chicle.sources.frames import Form

__all__ = ["Release", "load"]

_AT_ONCE = 2**17  # rows that are decoded at once

# Each use has a stream of its own of the same seed.
_DECODE, _RESTORE, _SETTLE, _PERSONS = 0xDEC0DE, 0x5E57, 0x5E77, 0x9E25

_STANDS_OUT = 3  # standard deviations by which an estimated number of rows must exceed its noise


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
    persons
        How many rows persons have, where the schema has a person column.
    analyses
        The answers to the analyses that were declared, in that order.

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
    persons: PersonRows | None = None
    analyses: tuple[Coefficients, ...] = ()

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
            model=model_of_tables(codec.without_zeros(measurements), codec.domain, generator, codec.amounts),
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
    def partition(self) -> tuple[str, ...]:
        """The columns whose values form partitions; empty if there are none."""
        return self.schema.partition

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Every table of noisy counts, over `domain`; contrasts are in the transcript."""
        return self.transcript.measurements

    @property
    def tables(self) -> list[Measurement]:
        """Every table that records can be made of: measurements, and the tables that contrasts make.

        The noise in the cells of a table of contrasts is not independent; its sigma is the one with which all tables
        together weigh as the contrasts do.
        """
        return self.transcript.tables(self.domain)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table should know."""
        return tuple(self.transcript.notes)

    @property
    def weakness(self) -> list[str]:
        """In which ways the budget is weak, by the declared number of rows or else the released estimate of it."""
        if self.ledger.budget is None:
            return []
        rows, estimate = self.schema.rows, self.total
        if rows is None and estimate > _STANDS_OUT * total_sigma(self.measurements):
            return weakness(self.ledger.budget, estimate, declared=False)
        return weakness(self.ledger.budget, rows)

    def marginals(self) -> pa.Table:
        """Return everything that was released as one table: a row for each cell of each marginal.

        `marginal` numbers the tables, `clique` names the attributes, `cell` holds the labels of a row's values, bins or
        buckets, and `codes` their codes; `value` is the noisy count and `sigma` the standard deviation of its noise (of
        tables that contrasts make, see `tables`). Fine 1-ways of coarse columns come last. Groups and functionals are
        left out. A release that was made with test noise gives a warning.
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
        return tidy_table(self.tables, self.fine_one_ways, self.codec)

    @property
    def total(self) -> int:
        """The private estimate of the number of records."""
        return estimate_total(self.measurements)

    def sample(
        self,
        n: int | None = None,
        seed: int | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        given: Any = None,  # noqa: ANN401 - any table
        trace: list[float] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Any:  # noqa: ANN401 - the kind of table that was fitted
        """Draw a synthetic table: `n` rows, by default the private estimate of their number.

        Of linked tables, `n` is the number of parents, and both tables are returned, by name.

        Parameters
        ----------
        n, seed
            Number of rows, and the seed that fixes the draw.
        where
            A condition: for each of some columns its value, or a list of values. Draws are filtered until `n` rows
            satisfy it; by default one draw is. Of partitions only those that can satisfy it are drawn.
        given
            A table with some of the columns, to which the others are added: a row for each of its rows, in its order
            (`chicle.releases.conditional`). It may be private; then so is the result.
        trace
            A list to which the error after each pass is added.
        threads
            How many threads to use; all there are, if ``None``.
        progress
            Called after each pass with its number and the current error.

        Examples
        --------
        >>> import chicle
        >>> census = chicle.datasets.census(5_000, d=4)
        >>> release = chicle.Prism(epsilon=1, delta=1e-9).fit(census).release_
        >>> bool((release.sample(300, seed=0, where={"SEX": 1})["SEX"] == 1).all())
        True
        >>> rows = {"SEX": [0, 1, 1], "AGE": [40, 30, 20]}
        >>> release.sample(given=rows, seed=0)["AGE"].tolist()
        [40, 30, 20]
        """

        def note(number: int, error: float) -> None:
            if trace is not None:
                trace.append(error)
            if progress is not None:
                progress(number, error)

        drawn = self.draw(n, seed, where=where, given=given, threads=threads, progress=note)
        persons = self._persons_of(len(drawn.records), seed)
        return decode_table(drawn.records, self.codec, self.form, rng=drawn.rng, persons=persons, known=drawn.known)

    def sample_parts(
        self,
        n: int | None = None,
        seed: int | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        given: Any = None,  # noqa: ANN401 - any table
        rows: int = 2**17,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[pa.Table]:
        """Draw a synthetic table as `sample` does and yield it as Arrow tables of some rows each: for large tables.

        Only the codes of all rows are in memory, mostly one byte each.

        Parameters
        ----------
        n, seed, where, given, threads, progress
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
        most = integer("rows", rows, 1)
        drawn = self.draw(n, seed, where=where, given=given, threads=threads, progress=progress)
        persons = self._persons_of(len(drawn.records), seed)
        yield from decode_parts(
            drawn.records, self.codec, self.form, rows=most, rng=drawn.rng, persons=persons, known=drawn.known
        )

    def _persons_of(self, rows: int, seed: int | None) -> npt.NDArray[np.int64] | None:
        """Return the person of each row; None where each row has a person of its own."""
        if self.persons is None or self.persons.k == 1:
            return None
        return self.persons.assign(rows, np.random.default_rng(None if seed is None else [seed, _PERSONS]))

    def sample_shard(
        self, shard: int, n: int, seed: int, *, rows: int = SHARD_ROWS, threads: int | None = None
    ) -> Iterator[pa.Table]:
        """Draw one shard of a table of `n` rows, and yield it as Arrow tables, on any machine.

        Each shard is a draw of its own with nearly the same number of rows, so shards need not know of each other, and
        identifiers do not repeat between them. A draw of few rows is less accurate than one of many: make shards as
        large as memory allows. All shards of the same `n`, `seed` and `rows` make one table.

        Parameters
        ----------
        shard
            The number of the shard, from 0 on; `chicle.plans.shards` says how many there are.
        n, seed
            Number of rows of the whole table, and the seed that fixes it.
        rows
            Most rows of a shard.
        threads
            How many threads to use; all there are, if ``None``.

        Examples
        --------
        >>> import chicle
        >>> from chicle.plans import shards
        >>> synth = chicle.Independent(epsilon=1, delta=1e-9).fit(chicle.datasets.census(5_000, d=6))
        >>> shards(1_000, rows=300)
        4
        >>> [len(table) for shard in range(4) for table in synth.release_.sample_shard(shard, 1_000, 0, rows=300)]
        [250, 250, 250, 250]
        """
        number = shards(integer("n", n, 0), integer("rows", rows, 1))
        integer("shard", shard, 0, number - 1)
        begin, end = shard * n // number, (shard + 1) * n // number
        own = int(np.random.SeedSequence([check_seed(seed), shard]).generate_state(1, np.uint64)[0])
        drawn = self.draw(end - begin, own, threads=threads)
        persons = self._persons_of(end - begin, own)
        yield from decode_parts(
            drawn.records,
            self.codec,
            self.form,
            rows=_AT_ONCE,
            rng=drawn.rng,
            persons=None if persons is None else persons + begin,
            first=begin,
            total=n,
        )

    def sample_spark(
        self,
        spark: Any,  # noqa: ANN401 - pyspark is optional
        n: int | None = None,
        seed: int | None = None,
        *,
        rows: int = SHARD_ROWS,
    ) -> Any:  # noqa: ANN401
        """Return a synthetic table as a Spark frame that executors make: `n` rows, by default the private estimate.

        Each shard (`sample_shard`) is one partition. Spark makes it when it is needed, and the same one again after a
        failure or in a second action, even without a seed. Each executor core needs memory for the codes of one shard
        and its tables.

        Parameters
        ----------
        spark
            The Spark session.
        n, seed
            Number of rows, and the seed that fixes the draw.
        rows
            Most rows of a shard.
        """
        if self.schema.presence is not None:
            raise ParameterError("linked tables are made on this machine; use `sample`")
        total = self.total if n is None else integer("n", n, 0)
        fixed = check_seed(seed)
        number = shards(total, integer("rows", rows, 1))
        none = Records({name: np.empty(0, dtype=np.uint8) for name in self.schema.domain}, self.schema.domain)
        types = decode_table(none, self.codec, Form("pyarrow", self.form.types)).schema

        def make(shard: int) -> Iterator[pa.Table]:
            return self.sample_shard(shard, total, fixed, rows=rows, threads=1)

        return spark_frame(spark, number, make, types)

    def draw(
        self,
        n: int | None = None,
        seed: int | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        given: Any = None,  # noqa: ANN401 - any table
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Drawn:
        """Return records over the schema's columns, and the generator that draws inside bins; as for `sample`."""
        if given is not None:
            if where is not None or n is not None:
                raise ParameterError("given has a row for each row to make; leave n and where out, or filter it first")
            return rows_given(self, given, seed, threads=threads, progress=progress)
        if where is not None:
            return rows_where(self, n, where, seed, threads=threads, progress=progress)
        rows = self.total if n is None else integer("n", n, 0)
        records = self.model.records(rows, seed, threads=threads, progress=progress)
        restore, decode, move = (
            np.random.default_rng(None if seed is None else [seed, use]) for use in (_RESTORE, _DECODE, _SETTLE)
        )
        records = settle(records, self._steady, move)
        return Drawn(self.codec.restore(records, self.fine_one_ways, restore), decode)

    def draws(
        self,
        m: int = 20,
        seed: int | None = None,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Draws:
        """Return a synthetic table and `m` replicates of it, for `chicle.pool`: free, and made one by one.

        Parameters
        ----------
        m
            How many replicates.
        seed
            Fixes all of them.
        threads
            How many threads to use; all there are, if ``None``.
        progress
            Called after each table with its number, and the share of them that is left.

        Examples
        --------
        >>> import chicle
        >>> release = chicle.Prism(epsilon=1, delta=1e-9).fit(chicle.datasets.census(5_000, d=4)).release_
        >>> means = [float(table["AGE"].mean()) for table in release.draws(m=5, seed=0)]
        >>> low, high = chicle.pool(means).interval(0.95)
        >>> low < high
        True
        """
        return Draws(self, m, seed, threads=threads, progress=progress)

    @property
    def alike(self) -> float:
        """By how much sampling variances grow if all rows of a person are alike; `max_records_per_person` at most."""
        return float(self.schema.max_records_per_person) if self.persons is None else self.persons.alike

    def answer(self, question: Question | Query) -> Answer:
        """Return counts, a mean or a quantile straight from the measurements, with standard errors.

        Parameters
        ----------
        question
            A `Query` over the columns, whose answer has arrays, or a `Count`, `Mean` or `Quantile` of
            `chicle.releases.answers`.

        Examples
        --------
        >>> import chicle
        >>> from chicle.releases.answers import Count, Mean
        >>> release = chicle.Prism(epsilon=1, delta=1e-9).fit(chicle.datasets.census(5_000, d=4)).release_
        >>> answer = release.answer(Mean("AGE"))
        >>> answer.noise_error < answer.standard_error, answer.tables[0]
        (True, ('AGE',))
        >>> low, high = release.answer(Count(where={"SEX": 1})).interval(0.95)
        >>> release.answer(chicle.Query(("SEX",))).standard_error.shape
        (2,)
        """
        return answer_query(self, question) if isinstance(question, Query) else answer(self, question)

    @cached_property
    def _steady(self) -> dict[str, npt.NDArray[np.float64]]:
        """The estimated counts of ordered attributes, with steady tails."""
        if isinstance(self.model, PartitionedModel):  # what is steady in the whole table need not be in one partition
            return {}
        return steady_one_ways(self.model.told(self.measurements), self.domain, self.codec.axes, self.total)

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
        plain = (
            not isinstance(self.model, PartitionedModel)
            and not self.codec.attributes.changes
            and not self.schema.constraints
        )
        return error_bounds(
            self.of_columns,
            self.schema.domain,
            cliques,
            confidence,
            synthetic=records,
            chosen=partial(distances_of, self, threads=threads) if plain else None,
            laplace=any(entry.event.pure for entry in self.ledger.entries),
            threads=threads,
        )

    def save(self, path: str | Path) -> None:
        """Write the release to one file, for `chicle.load`: JSON and plain arrays in a zip, nothing private.

        The file holds a copy of the ledger; after a load, spend on only one of the two.
        """
        held = {name: getattr(self, name) for name in Contents.__dataclass_fields__}
        write_artefact(path, Contents(**held))

    def __repr__(self) -> str:
        return "\n".join([self._head, *map(repr, self.analyses), *self.notes, repr(self.ledger)])

    def _repr_html_(self) -> str:
        return card(self._head, "\n".join(self.notes), self.ledger._repr_html_())

    @property
    def _head(self) -> str:
        cells = sum(measurement.values.size for measurement in self.measurements)
        kept = f"{len(self.measurements)} measurements of {cells:,} cells"
        if contrasts := self.transcript.contrasts:
            kept += f" and contrasts of {len(contrasts):,} cliques"
        beside = f", {len(self.fine_one_ways)} fine 1-ways" if self.fine_one_ways else ""
        return f"Release of {kept} over {self.domain!r}{beside}"


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
