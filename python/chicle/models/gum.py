"""GUM: records updated gradually towards target marginals ([P] sections 5.2 and 5.3; [D18] appendix A)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import MEMORY_LIMIT, check_seed, integer, threads_or_all
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import DomainError, InfeasibleError, ParameterError
from chicle.measurements.measurement import Measurement, check_all, estimate_total
from chicle.models.draws import draw_independent
from chicle.models.rewriting import rewriting_ranks, strongest_first

__all__ = ["DECAYS", "Gum", "Progress", "gum"]

Progress: TypeAlias = Callable[[int, float], None]
"""Called after each pass with its number, from 1, and the mean error of the targets."""

Variant: TypeAlias = Literal["published", "tuned"]
Order: TypeAlias = Literal["worst-first", "strongest-first", "given", "random"]
Decay: TypeAlias = Literal["step", "exponential", "linear", "sqrt", "constant"]

DECAYS: Mapping[str, Callable[[int], float]] = {
    "step": lambda t: 0.84 ** (t // 20),
    "exponential": lambda t: exp(-0.0087 * t),
    "linear": lambda t: 1 / (1 + 0.0139 * t),
    "sqrt": lambda t: 1 / sqrt(1 + 0.0472 * t),
    "constant": lambda _: 1.0,
}
"""The factor of alpha in pass t, from 0: the four decays of [P] 5.3, and none.

The step decay is the published one; the others have rates that take them to the same factor at pass 100.
"""

MAX_RECORDS = 2**31 - 1


@dataclass(frozen=True)
class _Options:
    """The options of a variant."""

    alpha: float
    decay: Decay
    duplicate: tuple[float, ...]
    growth: str
    removal: str
    pairing: str
    order: Order


_VARIANTS: Mapping[str, _Options] = {
    "published": _Options(1.0, "step", (0.5, 1.0), "multiplicative", "capped", "random", "worst-first"),
    "tuned": _Options(0.7, "step", (0.03,), "proportional", "excess", "matched", "strongest-first"),
}
_CHOICES = {
    "growth": ("multiplicative", "proportional"),
    "removal": ("capped", "excess"),
    "pairing": ("random", "matched", "flow"),
    "order": get_args(Order),
}


def gum(
    targets: Sequence[Measurement],
    domain: Mapping[str, int],
    n: int | None = None,
    *,
    start: Records | None = None,
    passes: int = 100,
    variant: Variant = "published",
    alpha: float | None = None,
    decay: Decay | None = None,
    duplicate: float | Sequence[float] | None = None,
    growth: str | None = None,
    removal: str | None = None,
    pairing: str | None = None,
    order: Order | None = None,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Records:
    """Make records whose marginals are close to the targets, by the gradual update method.

    Every pass visits each target once: cells with too few records grow, cells with too many shrink by as much, and the
    freed records become copies of records in growing cells (duplicate) or get just the clique's codes (replace).
    Use `Gum` to watch the error, to go on, or to stop early.

    Parameters
    ----------
    targets
        The tables to match, as `chicle.project` or `Desk.measure` return them, of any number of attributes. Negative
        values count as 0, and each table is then scaled to add up to `n` (one without any positive value is taken as
        even). Targets that agree with each other are matched best.
    domain
        The attributes.
    n
        Number of records; by default that of `start`, or else the total of the targets (mean of the totals, by
        inverse variance).
    start
        Records to start from, left as they are. By default every attribute follows the mean of the targets' own
        margins, independently of the others.
    passes
        How often to visit all targets.
    variant
        ``"published"``: the options of the paper. ``"tuned"``: ``growth="proportional"``, ``removal="excess"``,
        ``pairing="matched"``, ``duplicate=0.03``, ``alpha=0.7``, ``order="strongest-first"``; ten passes suffice.
        The options below override it one by one.
    alpha
        Update rate of the first pass.
    decay
        How alpha falls from pass to pass: a key of `DECAYS`.
    duplicate
        The share of growth by copies, or the shares of successive passes, repeated. Published: ``(0.5, 1.0)``. Cells
        without a record are always filled by replacement.
    growth
        ``"multiplicative"``: a cell with s records and target t grows by ``min(t - s, alpha * s)``, an empty one by
        ``alpha * t``. ``"proportional"``: by ``alpha * (t - s)``.
    removal
        ``"capped"``: a cell shrinks by ``min(s - t, beta * s)``, with beta such that totals agree. ``"excess"``: in
        proportion to ``s - t``.
    pairing
        Which freed record goes to which cell when replaced: ``"random"``; ``"matched"``, first those that need to
        change only one attribute, if possible the one that depends least on the others; ``"flow"``, so that the fewest
        attributes change in all (see `chicle.models.mcf.mcf`).
    order
        ``"worst-first"``: the target with the largest error at its last visit first; ``"strongest-first"``: targets of
        strongly dependent attributes first, so that fewer visits undo others; ``"given"``; ``"random"``.
    seed
        Fixes all draws.
    threads
        How many threads to use to count errors; the update itself runs on one. The records do not depend on it.
    progress
        Called after each pass with its number and the mean error of the targets as it found them.

    Examples
    --------
    >>> import numpy as np
    >>> target = Measurement(("age", "sex"), np.array([[30, 10], [5, 55]]), sigma=1.0)
    >>> records = gum([target], {"age": 2, "sex": 2}, passes=10, seed=0)
    >>> from chicle import count
    >>> count(records, [("age", "sex")])[0]
    array([[30, 10],
           [ 5, 55]])
    """
    run = Gum(
        targets,
        domain,
        n,
        start=start,
        variant=variant,
        alpha=alpha,
        decay=decay,
        duplicate=duplicate,
        growth=growth,
        removal=removal,
        pairing=pairing,
        order=order,
        seed=seed,
        threads=threads,
    )
    return run.run(passes, progress=progress).records()


class Gum:
    """The gradual update method, pass by pass. Parameters are those of `gum`.

    Attributes
    ----------
    trace
        Mean error of the targets, L1 distance over n, as each pass found them, and as it is now.

    Examples
    --------
    >>> import numpy as np
    >>> target = Measurement(("age", "sex"), np.array([[30, 10], [5, 55]]), sigma=1.0)
    >>> update = Gum([target], {"age": 2, "sex": 2}, seed=0).run(10)
    >>> len(update.trace), update.trace[-1]
    (11, 0.0)
    >>> len(update.records())
    100
    """

    def __init__(
        self,
        targets: Sequence[Measurement],
        domain: Mapping[str, int],
        n: int | None = None,
        *,
        start: Records | None = None,
        variant: Variant = "published",
        alpha: float | None = None,
        decay: Decay | None = None,
        duplicate: float | Sequence[float] | None = None,
        growth: str | None = None,
        removal: str | None = None,
        pairing: str | None = None,
        order: Order | None = None,
        seed: int | None = None,
        threads: int | None = None,
    ) -> None:
        self._domain = Domain.of(domain)
        self._options = _options(
            variant,
            alpha=alpha,
            decay=decay,
            duplicate=duplicate,
            growth=growth,
            removal=removal,
            pairing=pairing,
            order=order,
        )
        checked = check_tables(targets, self._domain)
        size = _size(n, start, self._domain, checked)
        scaled = [replace(target, values=onto_total(np.asarray(target.values, np.float64), size)) for target in checked]
        self._rng = np.random.default_rng(check_seed(seed))
        if start is None:
            start = independent_start(scaled, self._domain, size, seed=int(self._rng.integers(2**63)))
        by_rank = self._options.pairing == "matched" or self._options.order == "strongest-first"
        places = rewriting_ranks(scaled, self._domain) if by_rank else [0] * len(self._domain)
        self._strongest_first = strongest_first([target.clique for target in scaled], places, self._domain)
        self._kernel = _core.Gum(
            [start[name] for name in self._domain],
            list(self._domain),
            list(self._domain.values()),
            [(target.axes(self._domain.positions), np.ascontiguousarray(target.values), 1.0) for target in scaled],
            places,
            int(self._rng.integers(2**63)),
            threads_or_all(threads),
        )
        self._errors: npt.NDArray[np.float64] | None = None
        # Visits are ordered by the errors that the last pass found: counting again would cost a fifth of a pass.
        self._found = self.errors
        self._means: list[float] = []

    @property
    def errors(self) -> npt.NDArray[np.float64]:
        """The error of each target now: L1 distance over n."""
        if self._errors is None:
            self._errors = self._kernel.errors()
        return self._errors.copy()

    @property
    def trace(self) -> list[float]:
        """Mean error of the targets as each pass found them, each target just before its visit, and as it is now."""
        return [*self._means, float(self.errors.mean())]

    def run(self, passes: int, *, progress: Progress | None = None) -> Gum:
        """Do some more passes; after Ctrl-C the records are whole, with the last pass in part."""
        options = self._options
        for _ in range(integer("passes", passes, 0)):
            done = len(self._means)
            self._errors = None
            self._found = self._kernel.update(
                self._visits(),
                done,
                options.alpha * DECAYS[options.decay](done),
                options.duplicate[done % len(options.duplicate)],
                options.growth,
                options.removal,
                options.pairing,
            )
            self._means.append(float(self._found.mean()))
            if progress is not None:
                progress(done + 1, self._means[-1])
        return self

    def records(self) -> Records:
        """Return the records as they are now."""
        return Records(dict(zip(self._domain, self._kernel.records(), strict=True)), self._domain)

    def _visits(self) -> list[int]:
        if self._options.order == "worst-first":
            return [int(i) for i in np.argsort(-self._found, kind="stable")]
        if self._options.order == "strongest-first":
            return self._strongest_first
        if self._options.order == "random":
            return [int(i) for i in self._rng.permutation(len(self._found))]
        return list(range(len(self._found)))


def check_tables(targets: Sequence[Measurement], domain: Domain) -> list[Measurement]:
    """Return targets that fit the domain: GUM takes exact tables (sigma 0) too, and no buckets."""
    checked = check_all(targets, domain, exact=True, buckets=False)
    for target in checked:
        if target.values.size * 8 > MEMORY_LIMIT or target.values.size >= 2**32:
            raise InfeasibleError(
                f"target {target.clique!r} has {target.values.size} cells, above the limit of {MEMORY_LIMIT // 8}; "
                "use smaller cliques"
            )
    return checked


def onto_total(values: npt.NDArray[np.float64], total: int) -> npt.NDArray[np.float64]:
    """Return values of at least 0 that add up to `total`: negative ones become 0, the others keep their ratios."""
    kept = np.maximum(values, 0.0)
    found = kept.sum()
    scaled: npt.NDArray[np.float64] = (
        kept * (total / found) if found > 0 else np.full(values.shape, total / values.size)
    )
    return scaled


def independent_start(targets: Sequence[Measurement], domain: Domain, n: int, *, seed: int) -> Records:
    """Draw records whose attributes follow the mean of the targets' margins, independently of each other."""
    means = []
    for name in domain:
        found = [target.margin((name,)).values for target in targets if name in target.clique]
        if not found:
            raise DomainError(f"attribute {name!r} is in no target; add a target of ({name!r},) or give a start")
        # Margins of tables that add up to n need no further projection; any total of at least 1 serves.
        means.append(Measurement((name,), onto_total(np.mean(found, axis=0), max(n, 1)), 1.0))
    return draw_independent(means, domain, n, seed=seed)


def _size(
    n: int | None,
    start: Records | None,
    domain: Domain,
    targets: Sequence[Measurement],
) -> int:
    if n is not None:
        n = integer("n", n, 0)
    if start is not None:
        if start.domain != domain:
            raise DomainError("start must have the same domain: the same attributes, sizes and order")
        if n is not None and n != len(start):
            raise ParameterError("start has another number of records than n; leave n out, or give as many records")
        n = len(start)
    if n is None:
        exact = [target for target in targets if target.sigma == 0]
        n = round(float(np.mean([t.values.sum() for t in exact]))) if exact else estimate_total(targets)
        n = max(n, 0)
    if n > MAX_RECORDS:
        raise InfeasibleError(f"n is above the limit of {MAX_RECORDS} records; give a smaller n")
    return int(n)


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= 1


def _options(
    variant: str,
    *,
    alpha: float | None,
    decay: Decay | None,
    duplicate: float | Sequence[float] | None,
    growth: str | None,
    removal: str | None,
    pairing: str | None,
    order: Order | None,
) -> _Options:
    if variant not in _VARIANTS:
        raise ParameterError(f"variant must be 'published' or 'tuned', not {variant!r}")
    preset = _VARIANTS[variant]
    if alpha is not None and not (isinstance(alpha, (int, float)) and 0 < alpha < float("inf")):
        raise ParameterError(f"alpha must be a positive number, not {alpha!r}")
    if decay is not None and decay not in DECAYS:
        raise ParameterError(f"decay must be one of {', '.join(map(repr, DECAYS))}, not {decay!r}")
    for name, value in (("growth", growth), ("removal", removal), ("pairing", pairing), ("order", order)):
        if value is not None and value not in _CHOICES[name]:
            raise ParameterError(f"{name} must be one of {', '.join(map(repr, _CHOICES[name]))}, not {value!r}")
    return _Options(
        alpha=preset.alpha if alpha is None else float(alpha),
        decay=decay or preset.decay,
        duplicate=preset.duplicate if duplicate is None else _shares(duplicate),
        growth=growth or preset.growth,
        removal=removal or preset.removal,
        pairing=pairing or preset.pairing,
        order=order or preset.order,
    )


def _shares(duplicate: float | Sequence[float]) -> tuple[float, ...]:
    shares = tuple(duplicate) if isinstance(duplicate, (list, tuple)) else (duplicate,)
    if not shares or not all(_is_share(share) for share in shares):
        raise ParameterError(f"duplicate must be a share from 0 to 1, or a list of them, not {duplicate!r}")
    return tuple(float(share) for share in shares)
