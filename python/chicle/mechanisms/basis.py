"""The first steps of Prism and of AIM over records: the number of records, 1-ways, rare values merged, levels.

Only the number of records and the 1-ways are released; everything else here is computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chicle._checks import MEMORY_LIMIT
from chicle.domain import Clique
from chicle.domain import pairs as all_pairs
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement, estimate_total, onto_simplex
from chicle.measurements.merges import Merge, merge_rare
from chicle.mechanisms.prism_options import PrismOptions
from chicle.mechanisms.stages import Setting, Stages, count_stage, one_way_stage
from chicle.models.denoised import DenoisedModel
from chicle.models.independent import IndependentModel
from chicle.models.presence import PresenceModel
from chicle.selection.expected_error import noise_error
from chicle.selection.levels import Level, levels
from chicle.selection.sets import ChosenSet, as_queries
from chicle.selection.share import one_way_share

__all__ = ["NO_PAIR", "TOO_NOISY", "Basis", "Split", "begin"]

TOO_NOISY = "the 1-ways are too noisy for pairs to tell more: attributes are independent"
NO_PAIR = "no pair of attributes stands out: attributes are independent"

# Where the error of the 1-ways exceeds this share of the records, the rest of the budget helps more on 1-ways than on
# pairs: on five tables the errors of both cross between .09 and .15.
_TOO_NOISY = 0.1


@dataclass(frozen=True)
class Split:
    """How the budget is split between the number of records, 1-ways, scores and tables.

    Attributes
    ----------
    counting, one_ways, selection, tables
        The rho of each.
    """

    counting: float
    one_ways: float
    selection: float
    tables: float

    @classmethod
    def of(cls, setting: Setting, options: PrismOptions) -> Split:
        """Return the split for a table; the share of the 1-ways follows from the number of records."""
        domain, rho = setting.domain, setting.rho
        first = rho * options.counting
        rest = rho - first
        share = options.one_ways
        if share is None or len(domain) < 2:
            share = one_way_share(domain, setting.n, math.sqrt(2 * rho) / setting.k)
        singles = rest * share
        rest -= singles
        selection = rest * options.selection if len(domain) > 1 else 0.0
        return cls(first, singles, selection, rest - selection)

    @property
    def rest(self) -> float:
        """The rho left after the 1-ways."""
        return self.selection + self.tables

    def first_stages(self, setting: Setting) -> Stages:
        """Return the stages of the number of records and of the 1-ways."""
        return Stages.of(count_stage(self.counting), one_way_stage(setting, self.one_ways))


@dataclass(frozen=True, eq=False)
class Basis:
    """The first releases, and the desk at which the others are made.

    Attributes
    ----------
    desk, merged
        The desk of the mechanism, and the desk over merged values.
    split
        How the budget is split.
    merge
        The merge of rare values, as decided from the noisy 1-ways.
    measured
        The number of records and the 1-ways.
    resolutions
        The levels of each attribute.
    """

    desk: Desk
    merged: Desk
    split: Split
    merge: Merge
    measured: Sequence[Measurement]
    resolutions: Sequence[Sequence[Level]]

    @property
    def one_ways(self) -> Sequence[Measurement]:
        """The 1-ways as they were measured."""
        return self.measured[1:]

    @cached_property
    def total(self) -> int:
        """The released number of records, at least 1."""
        return max(estimate_total(self.measured), 1)

    @cached_property
    def one_way_error(self) -> float:
        """The error of the 1-ways that noise is expected to leave, as a share of the records."""
        return _one_way_error(self.one_ways, self.total)

    @property
    def too_noisy(self) -> bool:
        """Whether the 1-ways need the rest of the budget more than tables of pairs do."""
        return self.one_way_error > _TOO_NOISY

    @cached_property
    def pairs(self) -> list[Clique]:
        """The pairs that can be scored: those of at least two values each that are not too large to count."""
        domain = self.merged.domain
        return [
            pair for pair in all_pairs(domain) if min(domain.shape(pair)) > 1 and 8 * domain.cells(pair) <= MEMORY_LIMIT
        ]

    def measure_sets(self, sets: Sequence[ChosenSet], rho: float) -> list[Measurement]:
        """Release the tables of chosen sets, for rho in all, in proportion to the precisions they were chosen with."""
        asked = sum(chosen.precision for chosen in sets)
        queries = as_queries(sets, self.merged.domain, self.resolutions)
        return self.merged.measure(queries, rho=rho, shares=[chosen.precision / asked for chosen in sets])

    def measure_one_ways_again(self, why: str) -> IndependentModel:
        """Spend the rest of the budget on the 1-ways; return independent attributes, with a note that says why."""
        desk = self.desk
        if self.split.rest > 0:
            desk.measure_one_ways(rho=desk.left)
        if len(desk.domain) > 1:
            desk.note(why)
        return IndependentModel().fit(desk.targets, desk.domain)

    def denoised(self, options: PrismOptions) -> DenoisedModel:
        """Return the model of all tables so far."""
        presence = self.desk.presence
        model = (
            options.model(DenoisedModel)
            if presence is None
            else options.model(PresenceModel, presence=presence.to_plain())
        )
        return model.fit(self.desk.targets, self.desk.domain, merge=self.merge, amounts=self.desk.amounts)


def begin(desk: Desk, options: PrismOptions, split: Callable[[Setting], Split]) -> Basis:
    """Release the number of records and the 1-ways; merge rare values and make levels by them.

    Parameters
    ----------
    desk
        Where to measure.
    options
        How values are merged, and how many levels there are.
    split
        How the budget is split, given the number of records.
    """
    domain, rho = desk.domain, desk.left
    (size,) = desk.measure([()], rho=split(Setting.at(desk)).counting, purpose="number of records")
    parts = split(Setting(domain, rho, desk.k, float(size.values)))
    measured = [size, *desk.measure_one_ways(rho=parts.one_ways)]
    total = max(estimate_total(measured), 1)
    merge = merge_rare(
        measured[1:], domain, theta=options.theta, ordinal=desk.ordinal, vanish=False, apart=desk.kept_apart
    )
    merged = desk.merged(merge)
    resolutions = [
        levels(
            onto_simplex(one.values, total),
            ordinal=one.clique[0] in desk.ordinal,
            sizes=options.sizes,
            apart=merged.kept_apart.get(one.clique[0], 0),
        )
        for one in merged.one_ways()
    ]
    return Basis(desk, merged, parts, merge, measured, resolutions)


def _one_way_error(measured: Sequence[Measurement], total: float) -> float:
    """Return the mean expected L1 error of the 1-ways, as a share of the records, by `selection.expected_error`."""
    errors = []
    for one_way in measured:
        counts = onto_simplex(one_way.values, total)
        errors.append(noise_error(counts, one_way.sigma) / total)
    return float(np.mean(errors))
