"""PMW-pub ([G] section 3): weights on the rows of a public table, fitted to what was measured of the private one."""

from __future__ import annotations

from dataclasses import dataclass

from chicle.domain import Domain
from chicle.errors import ParameterError
from chicle.measurements.desk import Desk
from chicle.measurements.public_rows import PublicRows
from chicle.mechanisms.base import register_mechanism
from chicle.mechanisms.query_rounds import QueryRounds
from chicle.models.reweighted import Update, WeightedRowsModel

__all__ = ["PMWPub"]

_FINAL_SWEEPS = 100  # over whole tables, for the model that is released


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class PMWPub(QueryRounds[WeightedRowsModel]):
    """Give the distinct rows of a public table weights, so that it answers the workload as the private table does.

    It begins with how often each public row occurs. By default it measures whole tables, and multiplies the weights of
    the rows in each cell so that the cell comes to within two standard deviations of its noise, three in a large table.
    The published form (``published=True``) measures single cells, and takes half steps as MWEM does.

    No synthetic row can be one that the public table does not have: where the private table has others, the error stops
    falling at that of the best mixture of public rows.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    workload, rounds, per, published, alpha
        As for every mechanism of query release; see `chicle.GEM`.
    update
        How single cells are fitted: ``"pep"``, by projections as PEP does (PEP-pub, the default with ``per="query"``),
        or ``"mwem"``, by half steps, as published. Half steps hardly move the weights once errors are below .015.

    Examples
    --------
    >>> import chicle
    >>> here, there = chicle.datasets.census(5_000, d=5, seed=1), chicle.datasets.census(5_000, d=5, seed=2)
    >>> synth = chicle.PMWPub(epsilon=1, delta=1e-9).fit(here, public=there)
    >>> synth.release_.transcript.notes[0].split(", ")[1]
    "5,000 rows of 'SEX'"
    """

    public_data = "needed"
    default_rounds = {"table": 80, "query": 100}  # noqa: RUF012 - as the base has it
    one_way_share = {"table": 0.0, "query": 0.0}  # noqa: RUF012

    update: Update | None = None

    @property
    def updating(self) -> Update:
        """How single cells are fitted."""
        if self.update is None:
            return "mwem" if self.published else "pep"
        return WeightedRowsModel(update=self.update).update  # which checks it

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        super().check(domain)
        _ = self.updating

    def check_public(self, public: PublicRows, domain: Domain) -> None:
        """Raise for public rows that lack an attribute."""
        if absent := [name for name in domain if name not in public.records.domain]:
            raise ParameterError(
                f"PMWPub weights whole public rows, but the public data have no {absent[0]!r}; add it, leave it out of "
                "the schema, or use GEM, which takes public data of some columns"
            )

    def refit(self, desk: Desk, before: WeightedRowsModel | None, *, final: bool = False) -> WeightedRowsModel:
        """Return the model of all measurements so far, continued from the round before."""
        rows = None if desk.public is None else desk.public.records
        model = WeightedRowsModel(rows=rows, update=self.updating, **({"sweeps": _FINAL_SWEEPS} if final else {}))
        return model.fit(desk.targets, desk.original, start=before, threads=desk.threads)
