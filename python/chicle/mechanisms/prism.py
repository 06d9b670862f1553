"""Prism (PRIvate Synthesis from Multi-resolution marginals): chicle's own mechanism, and its default.

1. The number of records, for a sliver of the budget; the share of the 1-ways follows from it (`selection.share`).
2. 1-ways, shares ~ cells^(2/3); values that do not stand out from noise are merged (`measurements.merges`). If the
   1-ways are too noisy for anything else to help, they get the rest of the budget too.
3. Every attribute also at up to 20, 10 and 5 buckets (`selection.levels`).
4. The distance of every pair from independence, for a little budget (`measurements.scores`).
5. Expected errors (`selection.expected_error`) and one price for precision (`selection.price`) say which pairs to
   measure, at which level and with how much noise.
6. Small attributes are packed into sets of three and four (the kernel `pack`).
7. Measure; then let the tables correct each other (`denoising`): margins into 1-ways, directions shared between tables,
   each cell towards what is expected.
8. Where domains are small or the budget is large, pairs and then triples are measured by contrasts instead of steps 3
   to 7 (`mechanisms.contrast_stages`). Where only sets can be measured, the steps above get only a part of the budget,
   and a second stage measures what their records get wrong about pairs and triples (`mechanisms.second_stage`).
9. Records by residual descent, half of them from a tree of pairs and half from independence; a record moves only where
   its gain stands out from noise.

Steps 1, 2, 4, 7 and 8 release something, through the ledger. Everything else is computed from what was released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chicle.domain import Clique, Domain
from chicle.measurements.desk import Desk
from chicle.mechanisms.base import Mechanism, register_mechanism
from chicle.mechanisms.basis import NO_PAIR, TOO_NOISY, Split, begin
from chicle.mechanisms.contrast_stages import by_contrasts, contrast_stages, likely_by_contrasts, pays_by_contrasts
from chicle.mechanisms.prism_options import PrismOptions, check_options
from chicle.mechanisms.second_stage import planned_share, second_stages, share_of_first_stage, with_second_stage
from chicle.mechanisms.stages import Setting, Stages, score_stage, selected_stage
from chicle.models.base import Model
from chicle.releases.bounds import Distance
from chicle.releases.release import Release
from chicle.releases.unmeasured import distances_of_contrasts
from chicle.schema import Schema
from chicle.selection.expected_error import steady
from chicle.selection.sets import Packing, choose_sets

__all__ = ["Prism", "PrismOptions"]


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class Prism(Mechanism):
    """Marginals at several resolutions, chosen by one price; tables that correct each other; records by descent.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    options
        The switches of its steps.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.Prism(epsilon=1, delta=1e-9).fit(census)
    >>> table = synth.sample(seed=0)
    >>> synth.ledger_.epsilon() <= 1
    True
    """

    per_pair = 18

    options: PrismOptions | None = None

    def check(self, domain: Domain) -> None:
        """Raise for options of another kind."""
        del domain
        check_options(self.options)

    def weighs(self, schema: Schema) -> bool:
        """Return whether it weighs pairs as the schema says: where the schema says something."""
        return schema.workload is not None

    def stages(self, setting: Setting) -> Stages:
        """Split the budget as for `n` records; a fit measures their number privately."""
        options = check_options(self.options)
        split = Split.of(setting, options)
        number = len(setting.domain) * (len(setting.domain) - 1) // 2
        if split.selection > 0 and likely_by_contrasts(setting, split.rest, options):
            return Stages.of(*split.first_stages(setting).all, *contrast_stages(setting, split.rest))
        share = planned_share(setting, split.rest, options)
        later = (
            score_stage(share * split.selection, number),
            selected_stage(setting, share * split.tables, "the chosen sets"),
            *second_stages((1 - share) * split.rest),
        )
        return Stages.of(*split.first_stages(setting).all, *(later if split.selection > 0 else ()))

    def run(self, desk: Desk) -> Model:
        """Measure 1-ways, score pairs, measure the sets that are worth their price."""
        options = check_options(self.options)
        basis = begin(desk, options, lambda table: Split.of(table, options))
        if basis.pairs and pays_by_contrasts(basis, options):
            return by_contrasts(basis, options)
        if basis.too_noisy:
            return basis.measure_one_ways_again(TOO_NOISY)
        if not basis.pairs:
            return basis.measure_one_ways_again(NO_PAIR)
        merged = basis.merged
        share = share_of_first_stage(basis, options)
        pairs, weights = basis.pairs, None
        if desk.workload is not None:
            matters = desk.workload.coverage()
            pairs = [pair for pair in pairs if pair in matters]
            weights = np.array([matters[pair] for pair in pairs])
        scores = merged.score(pairs, merged.independence(), rho=share * basis.split.selection)
        sets = choose_sets(
            steady(scores.values, scores.sigma),
            pairs,
            basis.resolutions,
            merged.domain,
            ordinal=desk.ordinal,
            total=basis.total,
            budget=2 * share * basis.split.tables / desk.k**2,
            weights=weights,
            caution=options.caution,
            packing=Packing(options.order, options.triple_bonus, options.triple_error),
            threads=self.threads,
        )
        if not sets:
            return basis.measure_one_ways_again(NO_PAIR)
        basis.measure_sets(sets, share * basis.split.tables)
        if share == 1:
            return basis.denoised(options)
        return with_second_stage(basis, sets, dict(zip(pairs, scores.values.tolist(), strict=True)), options)

    @classmethod
    def unmeasured(
        cls, release: Release, cliques: Sequence[Clique], *, threads: int | None = None
    ) -> list[Distance | None]:
        """Return bounds on cliques that no table holds: by contrasts, or by scores."""
        if release.transcript.contrasts:
            return distances_of_contrasts(release, cliques)
        return super().unmeasured(release, cliques, threads=threads)
