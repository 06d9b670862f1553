"""Write a report: one HTML file that opens offline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chicle._checks import threads_or_all
from chicle._write import replacing
from chicle.errors import ArtefactError, ParameterError
from chicle.evaluation import Evaluation, evaluate
from chicle.evaluation.tables import read_one, schema_of
from chicle.releases.release import Release
from chicle.reports.facts import Facts
from chicle.reports.page import page
from chicle.schema import Schema
from chicle.schema.linked import LinkedSchema

__all__ = ["report"]


def report(
    path: str | os.PathLike[str],
    release: Release | None = None,
    synthetic: Any = None,  # noqa: ANN401 - any table, or the path of one
    *,
    real: Any = None,  # noqa: ANN401
    evaluation: Evaluation | None = None,
    schema: Schema | Mapping[str, int] | str | os.PathLike[str] | None = None,
    confidence: float = 0.95,
    title: str = "Synthetic table",
    remarks: Sequence[str] = (),
    seed: int = 0,
    threads: int | None = None,
) -> Path:
    """Write a report on a synthetic table as one HTML file, which opens offline and fetches nothing.

    A report on a release alone is safe to publish: it shows the privacy guarantee, the measurements beside the
    synthetic counts, and bounds on the errors. A report with the real table shows how good the synthetic table is; it
    is NOT PRIVATE, and its first line says so.

    Parameters
    ----------
    path
        The file.
    release
        The release that the table was made from.
    synthetic
        The synthetic table: `Records`, a pandas, polars or pyarrow table, or a path; by default it is drawn from the
        release.
    real
        The real table, to compare with. NOT PRIVATE.
    evaluation
        The result of `chicle.evaluate`, if there is one already. NOT PRIVATE.
    schema
        What the columns are, if there is no release.
    confidence
        The probability with which each bound on an error holds.
    title, remarks
        Text for the heading, and for the section on how the table was made.
    seed
        Fixes the table that is drawn and everything that the comparison draws.
    threads
        How many threads to use; all there are, if ``None``.

    Examples
    --------
    >>> import chicle, tempfile
    >>> synth = chicle.Prism(epsilon=1, delta=1e-9).fit(chicle.datasets.census(5_000, d=6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = chicle.report(f"{folder}/census.html", synth.release_).read_text(encoding="utf-8")
    >>> "Safe to publish" in text, "NOT PRIVATE" in text
    (True, False)
    """
    if release is None and real is None and evaluation is None:
        raise ParameterError("a report needs a release, or the real table to compare with; give release= or real=")
    if release is None and synthetic is None:
        raise ParameterError("there is no release to draw a synthetic table from; give synthetic=")
    if release is not None and schema is not None:
        raise ParameterError("a release brings its own schema; leave schema= out")
    declared = schema_of(real if real is not None else synthetic, schema, release)
    threads = threads_or_all(threads)
    drawn = synthetic is None
    if synthetic is None and release is not None:
        linked = isinstance(declared, LinkedSchema)  # a page shows their wide rows
        synthetic = release.draw(seed=seed).records if linked else release.sample(seed=seed, threads=threads)
    made = read_one("synthetic", synthetic, declared, synthetic=True)
    truth = None if real is None else read_one("real", real, declared)
    if evaluation is None and truth is not None:
        evaluation = evaluate(truth, made, declared, release=release, seed=seed, threads=threads)
    if evaluation is not None and evaluation.domain != declared.domain:
        raise ParameterError(
            "the evaluation is of a table with other attributes; give the evaluation of this table, or real="
        )
    bounds = [] if release is None else release.error_bounds(confidence=confidence, synthetic=made, threads=threads)
    facts = Facts(
        schema=declared,
        synthetic=made,
        drawn=drawn,
        release=release,
        bounds={bound.clique: bound for bound in bounds},
        evaluation=evaluation,
        real=truth,
        confidence=confidence,
        title=title,
        remarks=tuple(remarks),
        threads=threads,
    )
    text = page(facts)
    place = Path(path)
    try:
        with replacing(place) as beside:
            beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArtefactError(f"{place} cannot be written: {error.strerror}; choose another folder") from None
    return place
