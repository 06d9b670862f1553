"""The desk: the only way from a mechanism to private counts. Every answer is paid for by the ledger.

A mechanism gets a desk and nothing else of the private side. Every query is checked, paid for, answered with exact
noise and written into the transcript; there is no way to the rows themselves. A desk over merged values shares the
rows, the ledger and the transcript of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle._checks import MEMORY_LIMIT, integer
from chicle.counting.countable import UNITS, Cached, Countable, Expect, Independence
from chicle.domain import Clique, Domain
from chicle.errors import DomainError, ParameterError, PrivacyError
from chicle.measurements.cells import Cells, deviations, largest
from chicle.measurements.contrasts import CONTRASTS, Contrasts, contrast_sensitivity, contrast_weights, contrasts_of
from chicle.measurements.measurement import Measurement, best_one_ways
from chicle.measurements.merges import Merge
from chicle.measurements.public_rows import PublicRows
from chicle.measurements.purse import Purse
from chicle.measurements.scores import Choice, Scores, independence, vector_sensitivity, whole_weights
from chicle.measurements.transcript import Transcript
from chicle.presence import GivenPresence, Presence
from chicle.privacy.budget import Accounting, Budget, budget_shares, calibrate, calibrate_choice, real
from chicle.privacy.events import ExponentialEvent, GaussianEvent, PureEvent
from chicle.privacy.ledger import Ledger
from chicle.privacy.parallel import parallel_ledgers
from chicle.privacy.primitives import release_choice, release_gaussian, release_pure
from chicle.query import Maps, Query, QueryLike, as_query, one_ways
from chicle.workload import Workload

__all__ = ["Desk", "Progress"]

Zeros: TypeAlias = Mapping[Clique, npt.NDArray[np.bool_]]

Progress: TypeAlias = Callable[[int, float], None]
"""Called after each pass or round with its number, from 1, and how far it is from its goal."""


class Expecting(Protocol):
    """A model that gives expected counts of queries, over merged values or over the original ones."""

    def expect(
        self, queries: Sequence[QueryLike], *, merged: bool = False, threads: int | None = None
    ) -> list[npt.NDArray[np.float64]]: ...


Distance: TypeAlias = Literal["l1", "max"]

_MOST = 2.0**53  # units, above any distance: penalties are clipped to it


class Desk:
    """All that a mechanism sees of the private side.

    Parameters
    ----------
    rows
        The private rows.
    ledger
        The ledger that pays.
    rho
        What may be spent here; all that is left in the ledger, if ``None``.
    ordinal
        Attributes whose codes have an order.
    amounts
        The number that each code of an ordinal attribute stands for; the codes themselves where it is not given.
    zeros
        Structural zeros: for some cliques, the cells that no allowed row can occupy.
    clean
        Sets cells that no allowed row can occupy to 0 in measurements.
    public
        Rows that everybody may see, if some were given; free to use.
    presence
        Which attributes are there only if a number says so, as the schema declares it.
    workload
        The marginals that matter more than others, as the schema declares it.
    threads
        How many threads to use; all there are, if ``None``.
    progress
        Called after each round by mechanisms that have rounds.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(2_000, d=4)
    >>> desk = Desk(census, chicle.Ledger(chicle.Budget(epsilon=1, delta=1e-9)))
    >>> one_ways = desk.measure([(name,) for name in desk.domain], rho=desk.left / 2)
    >>> desk.score([("AGE", "SEX")], desk.independence(), rho=desk.left)
    Scores of 1 cliques, sigma 7.771 records
    >>> len(desk.transcript)
    5
    """

    def __init__(
        self,
        rows: Countable,
        ledger: Ledger,
        *,
        rho: float | None = None,
        ordinal: Collection[str] = (),
        amounts: Mapping[str, npt.NDArray[np.float64]] | None = None,
        zeros: Zeros | None = None,
        clean: Callable[[Iterable[Measurement]], Sequence[Measurement]] | None = None,
        public: PublicRows | None = None,
        presence: Presence | None = None,
        workload: Workload | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        if not isinstance(ledger, Ledger):
            raise PrivacyError(f"a fit is paid for by a chicle.Ledger, not a {type(ledger).__name__}")
        self.__rows = rows
        self.__cached: Cached | None = None
        may_spend = ledger.remaining if rho is None else real("rho", rho)
        if not 0 <= may_spend < math.inf:
            raise PrivacyError(f"rho must be finite and at least 0, not {rho!r}")
        self._purse = Purse(ledger, may_spend, ledger.spent, begun_pure=ledger.pure)
        self._parent: tuple[Desk, Merge] | None = None
        self._clean = clean
        self.ordinal = frozenset(ordinal)
        codes = {name: np.arange(self.domain[name], dtype=np.float64) for name in sorted(self.ordinal)}
        self.amounts = {**codes, **(amounts or {})}
        self.zeros: Zeros = dict(zeros or {})
        self.public = public
        self.presence, self.workload = presence, workload
        self.threads, self.progress = threads, progress
        self.transcript = Transcript()

    @property
    def domain(self) -> Domain:
        """The attributes and their cardinalities."""
        return self.__rows.domain

    @property
    def k(self) -> int:
        """How many rows one person may have: the ``k`` of every sensitivity."""
        return self.__rows.max_records_per_person

    @property
    def left(self) -> float:
        """The rho that may still be spent here."""
        return self._purse.left

    @property
    def spent(self) -> float:
        """The rho that was spent here so far."""
        return self._purse.ledger.spent - self._purse.begun

    @property
    def accounting(self) -> Accounting:
        """The currency of the ledger."""
        return self._purse.ledger.budget.accounting

    @property
    def protected(self) -> bool:
        """False where noise comes from a test's seed."""
        return self._purse.ledger.protected

    @property
    def merge(self) -> Merge | None:
        """The merge of values at this desk, if there is one."""
        return None if self._parent is None else self._parent[1]

    @property
    def original(self) -> Domain:
        """The attributes before any merge: those of the transcript."""
        return self.domain if self._parent is None else self._parent[0].original

    @property
    def targets(self) -> list[Measurement]:
        """All measurements so far, over the attributes before any merge; 0 in cells that no allowed row can occupy."""
        measured = self.transcript.tables(self.original)
        return list(measured if self._clean is None else self._clean(measured))

    def measure_one_ways(self, *, rho: float) -> list[Measurement]:
        """Release the 1-way of every attribute, as `measure` does, for rho in all."""
        return self.measure(one_ways(self.domain), rho=rho, purpose="1-way")

    def one_ways(self) -> list[Measurement]:
        """Return the most precise measurement of each attribute so far, over the values of this desk; free."""
        if self._parent is None:
            return list(best_one_ways(self.transcript.measurements, self.domain).values())
        parent, merge = self._parent
        return [merge.over(one) for one in parent.one_ways()]

    @property
    def kept_apart(self) -> dict[str, int]:
        """How many last values of an attribute must never be joined with others: nobody is no value."""
        return {} if self.presence is None else self.presence.apart(self.domain)

    def independence(self) -> Independence | GivenPresence:
        """Return the expected counts of independent attributes, from the released 1-ways; free.

        Where the schema says who is there when, they are independent given that.
        """
        found = independence(self.one_ways(), self.domain)
        if self.presence is None:
            return found
        return GivenPresence(self.presence, self.presence.consistent(found.shares), found.total)

    def expect(self, model: Expecting) -> Expect:
        """Return a function from queries over this desk's values to the counts that a model expects; free."""
        return partial(model.expect, merged=self.merge is not None, threads=self.threads)

    def measure(
        self,
        queries: Iterable[QueryLike | Iterable[str]],
        *,
        rho: float | None = None,
        sigma: float | Sequence[float] | None = None,
        shares: Sequence[float] | None = None,
        purpose: str = "marginal",
        memory_limit: int = MEMORY_LIMIT,
    ) -> list[Measurement]:
        """Release the answers to queries with exactly rounded Gaussian noise.

        Neighbours: add or remove one person, who has at most k rows.
        Sensitivity: those rows may share one cell, so the counts of a clique move by at most k in L2 (not sqrt k), at
        any resolution and in any group; for functionals see `Query.l2_sensitivity`. An answer of sensitivity s at
        noise sigma costs ``s^2 / (2 sigma^2)`` of rho.

        All queries are paid for in one debit or not at all; if anything fails before noise is drawn, nothing is spent.

        Parameters
        ----------
        queries
            What to measure: queries or cliques; ``()`` is the number of records.
        rho
            The cost of all of them.
        sigma
            Instead of rho: the standard deviation of the noise, for all queries or for each.
        shares
            The share of rho of each query; ~ cells^(2/3) by default, which gives the least noise in all.
        purpose
            The name of these releases in the ledger.
        memory_limit
            As for `chicle.count`.
        """
        if isinstance(queries, str):
            raise DomainError("queries must be a list of tuples of attribute names, not a string")
        asked = [
            (one if isinstance(one, Query) else Query(self.domain.check(one))).checked(self.domain) for one in queries
        ]
        # The transcript is over the attributes before any merge: queries it cannot express fail before they are paid.
        original = None if self.merge is None else [self.merge.behind(query) for query in asked]
        sensitivities = [query.l2_sensitivity(self.k) for query in asked]
        sigmas = self._sigmas(asked, sensitivities, rho, sigma, shares)
        events = [
            GaussianEvent(
                purpose=purpose,
                clique=query.clique,
                l2_sensitivity=sensitivity,
                sigma=noise,
                values=query.cells(self.domain),
            )
            for query, sensitivity, noise in zip(asked, sensitivities, sigmas, strict=True)
        ]
        ledger = self._purse.ledger
        self._purse.check(events)
        rows = self.__rows if self.__cached is None else self.__cached
        exact = rows.count(
            [query.clique if query.plain else query for query in asked],
            threads=self.threads,
            memory_limit=memory_limit,
        )
        noisy = release_gaussian(exact, events, ledger)
        measured = [
            Measurement(query.clique, values, noise, ledger.protected, query.buckets, query.where, query.functional)
            for query, values, noise in zip(asked, noisy, sigmas, strict=True)
        ]
        self.transcript.entries += (
            measured
            if original is None
            else [replace(one, buckets=query.buckets) for one, query in zip(measured, original, strict=True)]
        )
        return measured

    def measure_contrasts(
        self,
        cliques: Iterable[Iterable[str]],
        *,
        rho: float,
        shares: Sequence[float],
        purpose: str = CONTRASTS,
        memory_limit: int = MEMORY_LIMIT,
    ) -> list[Contrasts]:
        """Release the contrasts of cliques, what their tables say beyond their margins, with exactly rounded noise.

        Neighbours: add or remove one person, who has at most k rows.
        Sensitivity: contrasts divided by their weights move by at most ``k sqrt(product of 2 (1 - 1/m))`` in L2, for
        attributes of m values; `chicle.measurements.contrasts` proves it.

        Parameters
        ----------
        cliques
            What to measure: each of at least one attribute, all of two values at least.
        rho
            The cost of all of them.
        shares
            The share of rho of each clique.
        purpose, memory_limit
            As for `measure`.
        """
        if self._parent is not None:
            raise DomainError(
                "contrasts are measured over the original values; measure them at the desk before a merge"
            )
        asked = [self.domain.check(tuple(clique)) for clique in cliques]
        for clique in asked:
            if not clique or min(self.domain.shape(clique)) < 2:
                raise DomainError(f"{clique!r} has no contrasts; each of its attributes needs two values or more")
        if not asked:
            return []
        if len(shares) != len(asked) or min(shares) < 0 or math.fsum(shares) > 1 + 1e-9:
            raise PrivacyError("contrasts need a share of rho for each clique, of 1 in all at most")
        shapes = [self.domain.shape(clique) for clique in asked]
        sensitivities = [contrast_sensitivity(shape, self.k) for shape in shapes]
        sigmas = [
            calibrate(real("rho", rho) * float(share), l2_sensitivity=sensitivity)
            for share, sensitivity in zip(shares, sensitivities, strict=True)
        ]
        events = [
            GaussianEvent(
                purpose=purpose,
                clique=clique,
                l2_sensitivity=sensitivity,
                sigma=sigma,
                values=math.prod(size - 1 for size in shape),
            )
            for clique, shape, sensitivity, sigma in zip(asked, shapes, sensitivities, sigmas, strict=True)
        ]
        ledger = self._purse.ledger
        self._purse.check(events)
        exact = [
            contrasts_of(table) for table in self.__rows.count(asked, threads=self.threads, memory_limit=memory_limit)
        ]
        noisy = release_gaussian(exact, events, ledger, weights=[contrast_weights(shape) for shape in shapes])
        made = [
            Contrasts(clique, values, sigma, ledger.protected)
            for clique, values, sigma in zip(asked, noisy, sigmas, strict=True)
        ]
        self.transcript.entries += made
        return made

    def score(
        self,
        queries: Sequence[QueryLike],
        expect: Expect,
        *,
        rho: float,
        memory_limit: int = MEMORY_LIMIT,
    ) -> Scores:
        """Release how far the counts of cliques are from what is expected, with exactly rounded Gaussian noise.

        Neighbours: add or remove one person, who has at most k rows.
        Sensitivity: each of K distances moves by at most k records, the vector by sqrt(K) times that in L2;
        `chicle.measurements.scores` proves it.

        Parameters
        ----------
        queries
            The queries to compare, without a functional; or cliques.
        expect
            Gives the tables to compare with, made from releases alone: a model's `expect`, or `independence`.
        rho
            The cost of the whole vector.
        memory_limit
            Most bytes that the counts of one clique may take; they are not kept.
        """
        kind = "InDif" if isinstance(expect, (Independence, GivenPresence)) else "distances"
        rows = self.__rows if self.__cached is None else self.__cached
        return self._scores(
            queries,
            kind,
            1,
            rho,
            lambda named: rows.distances(named, expect, threads=self.threads, memory_limit=memory_limit),
        )

    def dependence(self, pairs: Sequence[Clique], *, rho: float, memory_limit: int = MEMORY_LIMIT) -> Scores:
        """Release InDif as published: how far pairs are from the product of their own exact margins.

        Neighbours: add or remove one person, who has at most k rows.
        Sensitivity: each of K scores moves by at most 4k records, the vector by sqrt(K) times that in L2;
        `chicle.measurements.scores` proves it.

        Parameters
        ----------
        pairs
            Pairs of attributes.
        rho, memory_limit
            As for `score`.
        """
        for pair in pairs:
            if len(pair) != 2:
                raise DomainError(f"InDif is a score of pairs; {pair!r} has {len(pair)} attributes")
        return self._scores(
            pairs,
            "InDif",
            4,
            rho,
            lambda named: self.__rows.dependence(
                [as_query(one).clique for one in named], threads=self.threads, memory_limit=memory_limit
            ),
        )

    def choose(
        self,
        candidates: Sequence[QueryLike],
        expect: Expect,
        *,
        rho: float | None = None,
        epsilon: float | None = None,
        weights: Sequence[float] | None = None,
        penalties: Sequence[float] | None = None,
        distance: Distance = "l1",
        keeps: Callable[[Sequence[Any]], Sequence[bool]] | None = None,
        context: Mapping[str, float] | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> Choice:
        """Release a clique whose counts are far from what is expected, by the exponential mechanism.

        Its quality score is ``weight * (distance - penalty)`` ([A] equation 1).
        Neighbours: add or remove one person, who has at most k rows.
        Sensitivity: a person moves either distance by at most k, so any score by at most the largest weight times k.

        Parameters
        ----------
        candidates
            The queries to choose from, without a functional; or cliques, whose exact counts are kept for the next
            choice, as far as there is room.
        expect
            Gives the tables to compare with, made from releases alone.
        rho, epsilon
            The cost of the choice, or the epsilon of the exponential mechanism.
        weights
            How much each clique matters: in any unit, not negative; all the same by default.
        penalties
            Subtracted from each distance, in records; for example the expected error of its noisy table.
        distance
            How far a table is off: ``"l1"``, the sum over its cells, or ``"max"``, the largest of them.
        keeps
            A public rule for what may be chosen, too slow to apply to all candidates; at least one must satisfy it.
            It is applied to candidates that may be discarded, so it must be a pure function of its argument and of
            public values, and must keep nothing of its argument (PRIVACY.md, "Which clique to measure next").
        context
            Public numbers that the candidates depend on, kept with the choice.
        memory_limit
            As for `score`.
        """
        weights = [1.0] * len(candidates) if weights is None else weights
        penalties = [0.0] * len(candidates) if penalties is None else penalties
        if not candidates or not len(candidates) == len(weights) == len(penalties):
            raise ParameterError("a choice needs at least one clique, and a weight and a penalty for each")
        if not (np.isfinite(weights).all() and np.isfinite(penalties).all()):
            raise ParameterError("weights and penalties of a choice must be finite numbers")
        if distance not in get_args(Distance):
            raise ParameterError(f"distance must be one of {get_args(Distance)}, not {distance!r}")
        epsilon = self._epsilon(rho, epsilon)
        candidates = self._tables(candidates)
        ledger = self._purse.ledger
        event = ExponentialEvent(purpose="choice of a marginal", epsilon=epsilon, values=len(candidates))
        self._purse.check([event])
        rows = self._kept([one for one in candidates if isinstance(one, tuple)])
        measure = largest if distance == "max" else Countable.distances
        exact = measure(rows, candidates, expect, threads=self.threads, memory_limit=memory_limit)
        whole = whole_weights(weights)
        cost = np.clip(np.asarray(penalties, dtype=np.float64) * UNITS, -_MOST, _MOST).astype(np.int64)
        sensitivity = int(whole.max()) * self.k * UNITS
        rule = None if keeps is None else lambda places: keeps([candidates[place] for place in places])
        place = release_choice(whole * (exact - cost), sensitivity, event, ledger, rule)
        choice = Choice(candidates[place], epsilon, len(candidates), context or {})
        self.transcript.entries.append(choice)
        return choice

    def choose_cells(
        self,
        cliques: Sequence[Clique],
        expect: Expect,
        *,
        rho: float | None = None,
        epsilon: float | None = None,
        number: int = 1,
        repeats: bool = True,
        signed: bool = False,
        without: Collection[Query] = (),
        memory_limit: int = MEMORY_LIMIT,
    ) -> list[Choice]:
        """Release single cells whose counts are far from what is expected, by the exponential mechanism.

        The quality score of a cell is ``|count - expected|``. What is chosen is a query for the number of rows in it.
        Neighbours: add or remove one person, who has at most k rows.
        Sensitivity: a person moves any score by at most k (`chicle.measurements.cells`).

        Parameters
        ----------
        cliques
            The cliques whose cells are the candidates; their exact counts are kept, as in `choose`.
        expect
            Gives the tables to compare with, made from releases alone.
        rho, epsilon
            The cost of all choices, or the epsilon of each.
        number
            How many cells to choose, each by an exponential mechanism of its own.
        repeats
            Whether the same cell may be chosen more than once; otherwise the candidates become fewer.
        signed
            Whether to choose a cell and a sign: of ``count - expected`` and of ``expected - count`` for every cell, one
            that is large. [G] calls the second a negated query.
        without
            Cells that are not candidates, as queries.
        memory_limit
            As for `score`.
        """
        cells = Cells(cliques, self.domain)
        number = integer("number", number, 1)
        epsilon = self._epsilon(None if rho is None else real("rho", rho) / number, epsilon)
        places = cells.others(without)
        if places.size < (1 if repeats else number):
            raise ParameterError(
                f"there are {places.size:,} cells to choose from, too few for {number:,} choices; make fewer choices"
            )
        signs = 2 if signed else 1
        among = [signs * (places.size - (0 if repeats else i)) for i in range(number)]
        events = [ExponentialEvent(purpose="choice of a cell", epsilon=epsilon, values=values) for values in among]
        ledger = self._purse.ledger
        self._purse.check(events)
        rows = self._kept(cells.cliques)
        off = deviations(rows, cells.cliques, expect, threads=self.threads, memory_limit=memory_limit)[places]
        scores = np.stack([off, -off], axis=1).reshape(-1) if signed else np.abs(off)
        for event in events:
            drawn = release_choice(scores, self.k * UNITS, event, ledger)
            place, negated = divmod(drawn, signs)
            sign = (-1 if negated else 1) if signed else 0
            self.transcript.entries.append(Choice(cells.query(int(places[place])), epsilon, event.values, sign=sign))
            if not repeats:
                places = np.delete(places, place)
                scores = np.delete(scores, slice(place * signs, (place + 1) * signs))
        return [entry for entry in self.transcript.entries[-number:] if isinstance(entry, Choice)]

    def merged(self, merge: Merge) -> Desk:
        """Return a desk over the same private rows with rare values merged, as decided from released 1-ways."""
        if self._parent is not None:
            raise DomainError("values are merged once; merge at the desk over the original attributes")
        if merge.original != self.domain:
            raise DomainError("the merge is of other attributes than this desk has, or of other numbers of values")
        desk = Desk.__new__(Desk)
        vars(desk).update(vars(self))
        vars(desk).update(_Desk__rows=self.__rows.view(merge.maps, merge.domain), _Desk__cached=None)
        vars(desk).update(_parent=(self, merge), zeros={} if merge.changes else self.zeros)
        self.transcript.entries.append(merge)
        return desk

    @property
    def pure(self) -> float:
        """The pure epsilon that was spent here so far, beside rho."""
        return self._purse.ledger.pure - self._purse.begun_pure

    def can_set_aside(self, budget: Budget) -> bool:
        """Return whether a fit of this budget can pay for Laplace noise in epsilon: nothing else costs rho."""
        whole = self._purse.rho >= self._promise(budget).rho * (1 - 2.0**-40)
        return budget.epsilon is not None and self._purse.ledger.divisible and whole

    def set_aside(self, epsilon: float, budget: Budget) -> None:
        """Set so much of a fit's epsilon aside for Laplace noise (`Ledger.set_aside`); `left` follows from the rest."""
        purse = self._purse
        purse.ledger.set_aside(purse.begun_pure + real("epsilon", epsilon))
        purse.rho = self._promise(budget).with_pure(epsilon).rho

    def _promise(self, budget: Budget) -> Budget:
        """Return the budget of a fit, with the delta that its ledger sets aside for discovery."""
        aside = self._purse.ledger.budget.discovery
        if aside is None or budget.delta is None:
            return budget
        return Budget(**{**budget.promise(), "discovery": aside})

    def measure_pure(
        self, asked: QueryLike, *, epsilon: float, purpose: str = "marginal", memory_limit: int = MEMORY_LIMIT
    ) -> Measurement:
        """Release the counts of a query with exact discrete Laplace noise, which costs a pure epsilon and no rho.

        Neighbours: add or remove one person, who has at most k rows.
        Sensitivity: each of these rows is in at most one cell, in any buckets, so the counts move by at most k in L1.

        Parameters
        ----------
        asked
            What to measure: a query without a functional, or a clique.
        epsilon
            The cost, which the budget must set aside; see `chicle.Budget`.
        purpose
            The name of the release in the ledger.
        memory_limit
            As for `chicle.count`.
        """
        (named,) = self._tables([asked])
        query = as_query(named)
        original = None if self.merge is None else self.merge.behind(query)
        scale = self.k / real("epsilon", epsilon) * (1 + 1e-12)
        event = PureEvent(
            purpose=purpose,
            clique=query.clique,
            l1_sensitivity=self.k,
            scale=scale,
            values=query.cells(self.domain),
        )
        ledger = self._purse.ledger
        self._purse.check([event])
        (exact,) = self.__rows.count([named], threads=self.threads, memory_limit=memory_limit)
        noisy = release_pure(exact, event, ledger)
        measured = Measurement(query.clique, noisy, event.sigma, ledger.protected, query.buckets, query.where)
        buckets = measured.buckets if original is None else original.buckets
        self.transcript.entries.append(replace(measured, buckets=buckets))
        return measured

    def apart(self, names: Clique) -> Desk:
        """Return a desk over the same rows without some attributes; it spends here, with a transcript of its own."""
        return self._apart(names, self.__rows.view(*_without(self.domain, names)), self._purse)

    def groups(self, names: Clique, *, rho: float, purpose: str = "groups") -> list[Desk]:
        """Return a desk for the rows of each joint value of some attributes; each may spend rho, which is paid once.

        Neighbours: add or remove one person, who has at most k rows, which may be in several groups.
        Sensitivity: whatever a desk releases, x rows move it by at most x / k of what k rows move it by. So a person
        with x_g rows in group g costs at most ``(x_g / k)^2 rho`` there, and at most rho in all (PRIVACY.md).

        Parameters
        ----------
        names
            The attributes, without which the rows are seen; groups are in the order of their codes.
        rho
            What each group may spend, and what all of them cost together.
        purpose
            The name of these releases in the ledger.
        """
        if self._parent is not None:
            raise DomainError("groups are formed at the desk over the original attributes, before values are merged")
        names = self.domain.check(names)
        ledgers = parallel_ledgers(
            self._purse.paying(rho), rho=rho, groups=self.domain.cells(names), clique=names, purpose=purpose
        )
        parts = zip(self.__rows.parts(names), ledgers, strict=True)
        return [self._apart(names, rows, Purse(ledger, ledger.remaining, 0.0)) for rows, ledger in parts]

    def _apart(self, names: Clique, rows: Countable, purse: Purse) -> Desk:
        """Return a desk over other rows without some attributes, with a purse and a transcript of its own."""
        desk = Desk.__new__(Desk)
        vars(desk).update(vars(self))
        gone = frozenset(names)
        vars(desk).update(_Desk__rows=rows, _Desk__cached=None, _purse=purse, transcript=Transcript())
        desk.ordinal = self.ordinal - gone
        desk.amounts = {name: codes for name, codes in self.amounts.items() if name not in gone}
        desk.zeros = {clique: cells for clique, cells in self.zeros.items() if not gone & set(clique)}
        if self.public is not None:
            there = self.public.records.domain
            seen = self.public.records.view(*_without(there, [name for name in names if name in there]))
            desk.public = replace(self.public, records=seen)
        return desk

    def note(self, text: str) -> None:
        """Keep a sentence for the reader of the release."""
        self.transcript.notes.append(text)

    def close(self) -> None:
        """End the fit: nothing more is released here, or at a desk over merged values."""
        self._purse.closed = True

    def _epsilon(self, rho: float | None, epsilon: float | None) -> float:
        """Return the epsilon of a choice, given that or its cost."""
        if (rho is None) == (epsilon is None):
            raise ParameterError("a choice needs either rho or epsilon; give one of them")
        return epsilon if epsilon is not None else calibrate_choice(real("rho", rho), accounting=self.accounting)

    def _kept(self, cliques: Sequence[Clique]) -> Cached:
        """Return the rows with the counts of these cliques kept for later choices, as far as there is room."""
        if self.__cached is None:
            self.__cached = Cached(self.__rows)
        return self.__cached.keep(cliques, threads=self.threads)

    def _tables(self, queries: Sequence[QueryLike | Iterable[str]]) -> list[QueryLike]:
        """Return checked queries; one that asks for a functional is an error."""
        checked: list[QueryLike] = []
        for one in queries:
            if not isinstance(one, Query):
                checked.append(self.domain.check(one))
                continue
            if one.functional is not None:
                raise DomainError(f"a score compares whole tables; leave the functional of {one.clique!r} out")
            query = one.checked(self.domain)
            checked.append(query.clique if query.plain else query)
        return checked

    def _sigmas(
        self,
        queries: Sequence[Query],
        sensitivities: Sequence[int],
        rho: float | None,
        sigma: float | Sequence[float] | None,
        shares: Sequence[float] | None,
    ) -> list[float]:
        """Return the noise of each query."""
        if (rho is None) == (sigma is None):
            raise PrivacyError("a measurement needs either rho or sigma; give one of them")
        if sigma is not None:
            if isinstance(sigma, (str, bytes)) or np.ndim(sigma) > 1:
                raise PrivacyError("sigma must be a number, or one for each query")
            each = np.atleast_1d(sigma) if np.ndim(sigma) else [sigma] * len(queries)
            if len(each) != len(queries):
                raise PrivacyError(f"{len(queries)} queries need one sigma, or as many as there are; got {len(each)}")
            return [real("sigma", one) for one in each]
        parts = budget_shares([query.cells(self.domain) for query in queries]) if shares is None else shares
        if len(parts) != len(queries):
            raise PrivacyError(f"{len(queries)} queries need as many shares of rho; got {len(parts)}")
        if not (all(share >= 0 for share in parts) and math.fsum(parts) <= 1 + 1e-9):
            raise PrivacyError("shares of rho must not be negative, nor add up to more than 1")
        return [
            calibrate(real("rho", rho) * float(share), l2_sensitivity=sensitivity)
            for share, sensitivity in zip(parts, sensitivities, strict=True)
        ]

    def _scores(
        self,
        queries: Sequence[QueryLike],
        kind: str,
        row_sensitivity: int,
        rho: float,
        exact: Callable[[Sequence[QueryLike]], npt.NDArray[np.int64]],
    ) -> Scores:
        ledger = self._purse.ledger
        named = self._tables(queries)
        known: set[object] = set()
        for one in named:
            key = frozenset(one) if isinstance(one, tuple) else one.key
            if key in known:
                raise DomainError(f"{as_query(one).clique!r} occurs twice; each clique is scored, and paid for, once")
            known.add(key)
        if not named:
            return Scores((), np.empty(0), 0.0, ledger.protected)
        sensitivity = vector_sensitivity(row_sensitivity * self.k, len(named))
        sigma = calibrate(rho, l2_sensitivity=sensitivity)
        purpose = f"{kind}, 1/{UNITS} records"
        event = GaussianEvent(purpose=purpose, l2_sensitivity=sensitivity, sigma=sigma, values=len(named))
        self._purse.check([event])
        (noisy,) = release_gaussian([exact(named)], [event], ledger)
        scores = Scores(
            tuple(named),
            noisy / UNITS,
            sigma / UNITS,
            ledger.protected,
            "margins" if row_sensitivity > 1 else "released",
        )
        self.transcript.entries.append(scores)
        return scores

    def __repr__(self) -> str:
        return f"Desk over {self.domain!r}, rho {self.left:.4g} left"

    def __reduce__(self) -> tuple[object, ...]:
        raise PrivacyError("a desk leads to private rows and cannot be pickled; save the release instead")


def _without(domain: Domain, names: Collection[str]) -> tuple[Maps, Domain]:
    """Return the maps of a view, and its attributes: all of a domain but some."""
    kept = {name: size for name, size in domain.items() if name not in names}
    return {name: (name, None) for name in kept}, Domain(kept)
