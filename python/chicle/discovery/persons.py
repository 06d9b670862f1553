"""Buy how many rows persons have, for a sliver of the budget."""

from __future__ import annotations

from chicle.measurements.persons import PERSONS, PersonRows, cells_of
from chicle.plans import Step
from chicle.privacy.budget import calibrate
from chicle.privacy.events import GaussianEvent
from chicle.privacy.ledger import Ledger
from chicle.privacy.primitives import release_gaussian
from chicle.schema import Schema
from chicle.sources import Source

__all__ = ["measure_persons", "persons_step"]

_SHARE = 0.01
"""The share of the budget: noise of some dozens of persons at epsilon 1."""


def persons_step(schema: Schema, rho: float) -> list[Step]:
    """Return the step of a plan, if the schema has a person column."""
    if schema.person is None:
        return []
    sigma = calibrate(_SHARE * rho, l2_sensitivity=1)
    cells = len(cells_of(schema.max_records_per_person))
    return [Step(release=PERSONS, of=schema.person, rho=_SHARE * rho, sigma=sigma, values=cells)]


def measure_persons(source: Source, schema: Schema, rho: float, ledger: Ledger) -> PersonRows | None:
    """Release how many persons have how many rows; None if the source does not tell.

    Neighbours: add or remove one person.
    Sensitivity: the person is in exactly one cell, so the histogram moves by 1 in L2 (`chicle.measurements.persons`).
    """
    k = schema.max_records_per_person
    exact = source.person_rows(cells_of(k)) if schema.person is not None else None
    if exact is None:
        return None
    sigma = calibrate(_SHARE * rho, l2_sensitivity=1)
    event = GaussianEvent(purpose=PERSONS, l2_sensitivity=1, sigma=sigma, values=len(exact))
    (noisy,) = release_gaussian([exact], [event], ledger)
    return PersonRows(noisy, sigma, k, ledger.protected)
