"""Models of tables that somebody else released: the part of a mechanism after measuring.

``"prism"`` lets the tables correct each other and makes records as Prism does, but merges no values: the tables were
measured at the resolution they have. ``"descent"`` fits records to the tables as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from chicle.domain import Domain
from chicle.errors import DomainError, ParameterError
from chicle.measurements.measurement import Measurement, estimate_total, onto_simplex
from chicle.models.base import Model
from chicle.models.denoised import DenoisedModel
from chicle.models.descent import DescentModel
from chicle.models.independent import IndependentModel

__all__ = ["model_of_tables"]


def model_of_tables(
    measurements: Sequence[Measurement], domain: Domain, generator: str, amounts: Mapping[str, npt.NDArray[np.float64]]
) -> Model:
    """Fit a model to tables; each attribute must have a 1-way, or be in a table where it is not in buckets.

    Parameters
    ----------
    measurements
        The tables.
    domain
        The attributes.
    generator
        ``"prism"`` or ``"descent"``.
    amounts
        The number that each code of an ordinal attribute stands for.
    """
    if generator not in ("prism", "descent"):
        raise ParameterError(f"generator must be 'prism' or 'descent', not {generator!r}")
    singles = [_one_way(name, measurements) for name in domain]
    rest = [table for table in measurements if len(table.clique) > 1 or table.buckets]
    if generator == "descent":
        return DescentModel().fit([*singles, *rest], domain, amounts=amounts)
    for table in rest:
        if len(table.clique) == 1:
            raise DomainError(f"Prism's generator takes no 1-way in buckets ({table.clique[0]!r}); choose 'descent'")
    total = max(estimate_total(measurements), 1)
    size = Measurement((), np.array(total), 1.0)
    positive = [replace(one, values=onto_simplex(one.values, total)) for one in singles]
    model = DenoisedModel() if rest else IndependentModel()
    return model.fit([size, *positive, *rest], domain, amounts=amounts)


def _one_way(name: str, measurements: Sequence[Measurement]) -> Measurement:
    """Return the 1-ways of an attribute as one, else the most precise margin of a larger table."""
    held = [table for table in measurements if name in table.clique and name not in table.buckets]
    if not held:
        raise DomainError(f"no marginal has the single values of {name!r}; give its 1-way")
    alone = [table for table in held if len(table.clique) == 1]
    return Measurement.mean(alone) if alone else min((t.margin((name,)) for t in held), key=lambda one: one.sigma)
