"""PrivSyn ([P] Algorithm 3): 1-ways, filter rare values, select by InDif and DenseMarg, combine, measure, generate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal, get_args

from chicle._checks import check_seed, integer, memory_bytes, number
from chicle.counting.counter import MEMORY_LIMIT
from chicle.counting.records import Countable, Records
from chicle.denoising.consistency import project
from chicle.domain import Clique, Domain
from chicle.errors import DomainError, InfeasibleError, ParameterError
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import Compression, compress, over_compressed, over_original
from chicle.mechanisms.base import Mechanism, in_parts
from chicle.models.compose import compose
from chicle.models.descent import descend
from chicle.models.gum import gum
from chicle.models.mcf import mcf
from chicle.models.pgm import jt_size, model_bytes, pgm
from chicle.plans import Plan, Step, noise_errors, one_way_steps, pair_errors, rough_cost
from chicle.privacy.budget import Budget, calibrate
from chicle.privacy.ledger import Ledger
from chicle.releases.release import Generator, Note, Release, generator_of, singles_of
from chicle.schema import Schema
from chicle.selection import budget_shares, combine, dense_marg, given_cliques, indif
from chicle.selection.indif import Form

__all__ = ["PrivSyn"]

# GUM as published fits its targets by copying records, and what was not measured pays for it: on the fire calls of
# 2018 at epsilon 1 its 2-way error is .18, that of independent attributes .175, that of the tuned variant .046.
# Beyond three sweeps of descent records come closer to the noisy targets, but no closer to the true table.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "gum": {"variant": "tuned", "passes": 10},
    "descent": {"sweeps": 3},
    "mcf": {},
    "pgm": {"iterations": 300},
}
_KERNELS: dict[str, Callable[..., Records]] = {"gum": gum, "descent": descend, "mcf": mcf, "pgm": pgm}


_MODEL = 4 * 2**20  # bytes of the junction tree of chosen pairs


@dataclass(kw_only=True, eq=False, repr=False)
class PrivSyn(Mechanism):
    """The published system, every part of it, with exact accounting and tuned record kernels unless asked otherwise.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism; ``accounting="zcdp-basic"`` is the paper's.
    generator
        ``"gum"``, the paper's record update; ``"descent"``, chicle's own, closer to the targets and faster; ``"mcf"``,
        the paper's baseline; ``"pgm"``, a graphical model: chosen pairs that would take its junction tree above 4 MB
        are left out, and pairs are not combined.
    shares
        Parts of the budget for the 1-ways, for selection and for the chosen marginals. Within the first and the last,
        a marginal of c cells gets a share ~ c^(2/3) ([P] equation 1).
    form
        InDif scores against the ``"released"`` 1-ways (sensitivity 1), or as ``"published"`` (sensitivity 4).
    cliques
        What to measure; by default it is selected privately. The budget of selection then goes to measuring.
    gamma
        Chosen pairs are combined into larger cliques of at most this many cells ([P] Algorithm 2).
    theta
        Values whose noisy count is below this many sigmas are merged or dropped ([P] 5.3).
    separate, append
        Take unconnected parts and attributes of one marginal off the generator ([P] 5.3).
    options
        Keyword arguments for the generator. By default GUM runs 10 passes of its tuned variant, and descent three
        sweeps; ``{"variant": "published", "passes": 100}`` is the paper's GUM.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.PrivSyn(epsilon=1, delta=1e-9, generator="descent").fit(census)
    >>> table = synth.sample(seed=0)
    >>> synth.ledger_.epsilon() <= 1
    True
    """

    generator: Literal["gum", "descent", "mcf", "pgm"] = "gum"
    shares: tuple[float, float, float] = (0.1, 0.1, 0.8)
    form: Literal["released", "published"] = "released"
    cliques: Iterable[Iterable[str]] | None = None
    gamma: int = 5000
    theta: float = 3.0
    separate: bool = True
    append: bool = True
    options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        # A plan and a fit both read them.
        if isinstance(self.cliques, Iterator):
            self.cliques = list(self.cliques)

    def _check(self, schema: Schema) -> None:
        domain, options = schema.domain, self._generation()
        self._parts(1.0, domain)
        integer("gamma", self.gamma, 0)
        if self.form not in get_args(Form):
            raise ParameterError(f"form must be one of {get_args(Form)}, not {self.form!r}")
        given = [] if self.cliques is None else given_cliques(self.cliques, domain)
        if given and self.generator == "pgm":
            _check_model([*((name,) for name in domain), *given], domain, options["options"])

    def _plan(self, schema: Schema, budget: Budget, n: int) -> Plan:
        domain, k = schema.domain, schema.max_records_per_person
        first, second, third = self._parts(budget.rho, domain)
        steps = one_way_steps(domain, first, k, n)
        if self.cliques is None:
            pairs = len(domain) * (len(domain) - 1) // 2
            if pairs:
                steps.append(Step(release="selection", of=f"{pairs:,} pairs", values=pairs, rho=second))
            least, most = pair_errors(domain, third, k, n) or (None, None)
            steps.append(Step(release="marginal", of="the chosen cliques", rho=third, error=most, least_error=least))
        else:
            chosen = given_cliques(self.cliques, domain)
            for clique, share in zip(chosen, budget_shares(chosen, domain), strict=True):
                # Values may still be merged, so the cells are at most so many and the noise depends on the others'.
                sigma = calibrate(third * share, l2_sensitivity=k)
                (error,) = noise_errors([float(domain.cells(clique))], [sigma], n)
                steps.append(Step(release="marginal", of=" x ".join(clique), rho=third * share, error=error))
        per_pair = 9 if self.generator == "gum" else 15
        return Plan(f"PrivSyn ({self.generator})", budget, steps, n, rough_cost(domain, n, per_pair=per_pair))

    def _fit(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release:
        options = self._generation()
        first, second, third = self._parts(rho, schema.domain)
        domain = schema.domain
        singles: list[Clique] = [(name,) for name in domain]
        given = None if self.cliques is None else given_cliques(self.cliques, domain)
        one_ways = self._measure(records, singles, first, ledger, "1-way")
        compression = compress(one_ways, domain, theta=self.theta)
        coded = compression.encode(records)
        chosen = self._select(coded, compression.one_ways, ledger, second, third) if given is None else given
        # With nothing worth a marginal, the rest of the budget makes the 1-ways better.
        measured = self._measure(coded, chosen or singles, third, ledger)
        released = [over_original(table, compression) for table in measured]
        return Release(schema, (*one_ways, *released), ledger, "PrivSyn", options)

    def _select(
        self, records: Countable, one_ways: Sequence[Measurement], ledger: Ledger, second: float, third: float
    ) -> list[Clique]:
        if len(records.domain) < 2:
            return []
        scores = indif(records, ledger, rho=second, one_ways=one_ways, form=self.form, threads=self.threads)
        pairs = dense_marg(
            scores,
            records.domain,
            rho=third,
            l2_sensitivity=records.max_records_per_person,
            allow_not_private=not ledger.private,
        )
        if self.generator == "pgm":
            return _within(_MODEL, pairs, records.domain)
        return combine(pairs, records.domain, gamma=self.gamma)

    def _generation(self) -> dict[str, Any]:
        """Return all that records depend on but measurements."""
        if self.generator not in _KERNELS:
            raise ParameterError(f"generator must be 'gum', 'descent', 'mcf' or 'pgm', not {self.generator!r}")
        options = _DEFAULTS[self.generator] if self.options is None else self.options
        _check_options(self.generator, options)
        return {
            "generator": self.generator,
            "options": dict(options),
            "theta": number("theta", self.theta),
            "separate": self.separate,
            "append": self.append,
        }

    def _parts(self, rho: float, domain: Domain) -> tuple[float, float, float]:
        """Return the rho of the 1-ways, of selection and of the chosen marginals."""
        first, second, third = in_parts(rho, self.shares)
        selects = self.cliques is None and len(domain) > 1
        return (first, second, third) if selects else (first, 0.0, second + third)


@dataclass(frozen=True, eq=False)
class _PrivSynRecords(Generator):
    """Targets made to agree, then records of them by a kernel, over the compressed domain."""

    targets: Sequence[Measurement]
    compression: Compression
    generator: str
    options: Mapping[str, Any]
    separate: bool
    append: bool

    def records(self, n: int, seed: int | None, *, note: Note, threads: int | None = None) -> Records:
        make = _KERNELS[self.generator]

        def kernel(targets: Sequence[Measurement], domain: Domain, rows: int, seed: int) -> Records:
            return make(targets, domain, rows, seed=seed, threads=threads, progress=note, **self.options)

        domain = self.compression.domain
        if self.generator == "pgm":
            # The likeliest model needs neither tables that agree nor help with the easy parts.
            return self.compression.decode(kernel(self.targets, domain, n, check_seed(seed)), seed)
        tables = project(self.targets, domain, threads=threads)
        made = compose(kernel, tables, domain, n, seed, separate=self.separate, append=self.append)
        return self.compression.decode(made, seed)


@generator_of("PrivSyn")
def _generator(
    schema: Schema,
    measurements: Sequence[Measurement],
    told: Mapping[str, Any],
) -> Generator:
    _check_options(told["generator"], told["options"])
    one_ways, rest = singles_of(schema, measurements)
    compression = compress(one_ways, schema.domain, theta=told["theta"])
    measured = [over_compressed(table, compression) for table in rest]
    for table in measured:
        if table.coarsening:
            raise DomainError(f"the measurement of {table.clique!r} is coarser than the values that PrivSyn keeps")
    targets = [*compression.one_ways, *measured]
    return _PrivSynRecords(targets, compression, told["generator"], told["options"], told["separate"], told["append"])


def _check_model(cliques: Sequence[Clique], domain: Domain, options: Mapping[str, Any]) -> None:
    """Refuse cliques that no graphical model can hold before anything is spent."""
    limit = memory_bytes(options.get("memory_limit", MEMORY_LIMIT))
    if (size := model_bytes(cliques, domain)) > limit:
        raise InfeasibleError(
            f"a graphical model of these {len(cliques)} cliques takes {size:.3g} bytes, above the limit of "
            f"{limit:.3g}; give fewer cliques, take generator='gum' or 'descent', or raise the memory_limit in options"
        )


def _within(size: int, chosen: Sequence[Clique], domain: Domain) -> list[Clique]:
    """Return cliques, the first first, as long as their junction tree takes no more than so many bytes."""
    kept: list[Clique] = []
    for clique in chosen:
        if jt_size([*kept, clique], domain) <= size:
            kept.append(clique)
    return kept


def _check_options(generator: str, options: Mapping[str, Any]) -> None:
    taken = [p.name for p in signature(_KERNELS[generator]).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known = [name for name in taken if name not in ("seed", "threads", "progress", "zeros")]
    for name in options:
        if name not in known:
            raise ParameterError(f"options of {generator!r} have no {name!r}; there are {', '.join(known)}")
