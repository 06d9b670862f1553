"""Mixtures of product distributions, fitted by gradient descent: the model of GEM and RAP ([G] section 4).

The kernel is `rust/core/src/mixture`. What is kept is the probability of each value in each component; parameters live
as long as a fit, and the next fit of the same rounds goes on from them. Cost: a step of a fit takes about three
multiplications for each cell and component; an answer takes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import check_seed, integer, number, threads_or_all
from chicle.counting.records import Records
from chicle.errors import DomainError, ParameterError
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, average_repeats, best_one_ways, check_all
from chicle.models.base import Floats, Model, State, register_model
from chicle.query import Query, QueryLike, as_query

__all__ = ["COMPONENTS", "Average", "Link", "Loss", "MixtureModel"]

Link: TypeAlias = Literal["softmax", "projected", "network"]
Loss: TypeAlias = Literal["squares", "worst"]
Average: TypeAlias = Literal["no", "keep", "use"]

_Cells: TypeAlias = list[tuple[int, int | None]]
_F32: TypeAlias = npt.NDArray[np.float32]

COMPONENTS = 1_000
"""Components of a mixture, if there is room."""

_MOST = 2**20  # probabilities of a mixture: a step of Adam goes over all of them
_MOST_WEIGHTS = 2**22  # of a network; GEM's widths take 2.5 million for the 146 values of Adult
_AT_ONCE = 2**22  # cells answered at a time
_MOST_WORST = 100  # errors that a step of the worst errors takes
_ACTIVE, _SMOOTHED = 0.5, 0.5  # share of the smoothed largest error from which errors count; weight of the new one
_DECAY = 0.9  # of the average of parameters, a round


@register_model("mixture")
@dataclass(kw_only=True, eq=False)
class MixtureModel(Model):
    """K products of independent attributes, of equal weight.

    Attributes
    ----------
    link
        Where probabilities come from: ``"softmax"``, free logits; ``"projected"``, the probabilities themselves,
        projected on the simplex after each step, as RAP has them; ``"network"``, GEM's generator.
    components
        K, the number of products; fewer if attributes have more than about 1,000 values in all.
    loss
        ``"squares"``: squared errors, weighted by ``1 / sigma^2``; ``"worst"``: the mean size of the largest errors,
        those of at least half their smoothed maximum, at most a hundred.
    steps, rate, cosine
        Most steps of Adam, the learning rate, and whether it falls to 0 with the steps.
    average
        Whether to ``"keep"`` a running average of the parameters over fits that go on from each other, or to ``"use"``
        it for the answers.
    embedding, hidden
        Widths of the network; halved until it has at most 2^22 weights, if attributes have very many values.
    seed
        Of the first parameters. It is public and protects nothing.

    Examples
    --------
    >>> from chicle import Domain
    >>> domain = Domain({"age": 3, "sex": 2})
    >>> measured = [Measurement(("age", "sex"), np.array([[40, 20], [0, 20], [0, 20]]), 1.0)]
    >>> model = MixtureModel(components=100).fit(measured, domain)
    >>> model.expect([("sex",)])[0].round(-1)
    array([40., 60.])
    """

    link: Link = "softmax"
    components: int = COMPONENTS
    loss: Loss = "squares"
    steps: int = 300
    rate: float = 0.1
    cosine: bool = True
    average: Average = "no"
    embedding: int = 512
    hidden: int = 1_024
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, known in (
            ("link", self.link, Link),
            ("loss", self.loss, Loss),
            ("average", self.average, Average),
        ):
            if value not in get_args(known):
                raise ParameterError(f"{name} must be one of {get_args(known)}, not {value!r}")
        for name in ("components", "embedding", "hidden"):
            integer(name, getattr(self, name), 1)
        integer("steps", self.steps, 0)
        if not number("rate", self.rate):
            raise ParameterError("rate must be above 0")

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`; a mixture to start from hands its parameters on."""
        del progress
        measured = average_repeats(self._checked(one) for one in measurements)
        before = start if isinstance(start, MixtureModel) and start._goes_on(self) else None  # noqa: SLF001 - this class
        if before is None:
            trainer = self._trainer_of(measured, threads)
            self._largest: float | None = None
            self._mean: _F32 | None = None
        else:
            trainer, self._largest, self._mean = before._trainer, before._largest, before._mean  # noqa: SLF001
            trainer.reset()
        tables = [self._axes(one.query) for one in measured]
        flat = [np.asarray(one.values, dtype=np.float64).reshape(-1) / self.total for one in measured]
        targets = np.concatenate([np.empty(0), *flat]).astype(np.float32)
        if self.loss == "squares":
            least = min(one.sigma for one in measured)
            weights = [(least / one.sigma) ** 2 for one in measured]
            trainer.fit_squares(tables, targets, weights, self.steps, self.rate, self.cosine)
        elif tables:
            off = float(np.abs(trainer.answers(tables) - targets).max())
            seen = off if self._largest is None else self._largest
            self._largest = (1 - _SMOOTHED) * seen + _SMOOTHED * off
            limits = _ACTIVE * self._largest, _MOST_WORST
            trainer.fit_worst(tables, targets, *limits, self.steps, self.rate, self.cosine)
        if self.average != "no":
            now = trainer.parameters()
            self._mean = now if self._mean is None else (_DECAY * self._mean + (1 - _DECAY) * now).astype(np.float32)
            if self.average == "use":
                trainer.set_parameters(self._mean)
        self._trainer: _core.Mixture = trainer
        self._take(trainer.probabilities(), threads)

    def expect_tables(self, queries: Sequence[QueryLike], *, threads: int | None) -> list[Floats]:
        """Return expected counts over the merged domain."""
        del threads  # those of the fit
        asked = [as_query(one) for one in queries]
        found: list[Floats] = []
        for group in _groups([self._cells_of(one) for one in asked]):
            part = asked[len(found) : len(found) + group]
            answers = self._kernel.answers([self._axes(one) for one in part]).astype(np.float64)
            ends = np.cumsum([self._cells_of(one) for one in part])
            for one, flat in zip(part, np.split(answers, ends[:-1]), strict=True):
                whole = flat.reshape(tuple(self.merge.domain[name] for name in one.clique))
                found.append(_coarse(whole, one) * (self.total / max(float(whole.sum()), 1e-300)))
        return found

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain: components and, within each, values as evenly as rounding allows."""
        del progress
        domain, k = self.merge.domain, self._shares.shape[1]
        parts = np.split(self._shares.astype(np.float64), np.cumsum(list(domain.values()))[:-1])
        weights = [np.ones(k), *(np.ascontiguousarray(part.T).reshape(-1) for part in parts)]
        parents: list[int | None] = [None, *([0] * len(domain))]
        columns = _core.draw([k, *domain.values()], parents, weights, n, check_seed(seed), threads_or_all(threads))
        return Records(dict(zip(domain, columns[1:], strict=True)), domain)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays: the probabilities, bit by bit."""
        return {"probabilities": self._shares.reshape(-1).view(np.uint32)}

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        shares = np.ascontiguousarray(state["probabilities"], dtype=np.uint32).view(np.float32)
        values = sum(self.merge.domain.values())
        if not shares.size or shares.size % values or not (np.isfinite(shares).all() and (shares >= 0).all()):
            raise DomainError("the probabilities of the mixture do not fit the attributes")
        vars(self).pop("_trainer", None)
        self._take(shares, None)

    def _take(self, shares: _F32, threads: int | None) -> None:
        domain = self.merge.domain
        self._shares = shares.reshape(sum(domain.values()), -1)
        k = self._shares.shape[1]
        names, sizes = list(domain), list(domain.values())
        self._kernel = _core.Mixture.of_probabilities(names, sizes, k, shares, threads_or_all(threads))

    def _goes_on(self, later: MixtureModel) -> bool:
        """Whether a later fit can go on from the parameters of this one."""
        same = (self.link, self.components, self.embedding, self.hidden) == (
            later.link, later.components, later.embedding, later.hidden,
        )  # fmt: skip
        return same and hasattr(self, "_trainer") and self.merge.domain == later.merge.domain

    def _trainer_of(self, measured: Sequence[Measurement], threads: int | None) -> _core.Mixture:
        """Return a kernel with first parameters; free logits begin around the 1-ways, if all are measured."""
        domain = self.merge.domain
        k = max(1, min(self.components, _MOST // sum(domain.values())))
        sizes, pool = list(domain.values()), threads_or_all(threads)
        embedding, hidden = self.embedding, self.hidden
        while min(embedding, hidden) > 1 and _weights(embedding, hidden, sum(sizes)) > _MOST_WEIGHTS:
            embedding, hidden = embedding // 2, hidden // 2
        trainer = _core.Mixture(list(domain), sizes, k, self.link, (embedding, hidden), self.seed, pool)
        if self.link == "softmax" and {one.clique for one in measured} >= {(name,) for name in domain}:
            best = best_one_ways(measured, domain).values()
            floors = [np.maximum(one.floats, max(one.sigma / 2, 1e-9)) for one in best]
            logs = np.concatenate([np.log(values / values.sum()) for values in floors])
            free = trainer.parameters().reshape(-1, k) + logs[:, None]
            trainer.set_parameters(free.astype(np.float32).reshape(-1))
        return trainer

    def _checked(self, one: Measurement) -> Measurement:
        """Return a measurement over the merged values; one that a mixture cannot be fitted to is an error."""
        if one.whole:
            (checked,) = check_all([one], self.domain)
            (merged,) = check_all([self.merge.over(checked)], self.merge.domain, buckets=False)
            return merged
        if one.clique or one.functional is not None or self.merge.changes:
            raise DomainError(
                f"the measurement of {one.clique!r} is of a group or a functional; a mixture takes whole tables, and "
                "single cells of values that are not merged"
            )
        one.query.checked(self.domain)
        return one

    def _axes(self, query: Query) -> _Cells:
        """Return the axes of a query without its buckets."""
        domain = self.merge.domain
        whole: _Cells = [(domain.position(name), None) for name in query.clique]
        return [*whole, *((domain.position(name), code) for name, code in query.where.items())]

    def _cells_of(self, query: Query) -> int:
        return self.merge.domain.cells(query.clique)


def _weights(embedding: int, hidden: int, values: int) -> int:
    """Return how many weights a network has, without biases and norms."""
    return hidden * embedding + hidden * (embedding + hidden) + (embedding + 2 * hidden) * values


def _groups(cells: Sequence[int]) -> list[int]:
    """Return how many tables to answer at a time: together at most `_AT_ONCE` cells, or one larger table."""
    groups: list[int] = []
    room = -1
    for size in cells:
        if size > room:
            groups.append(0)
            room = _AT_ONCE
        groups[-1] += 1
        room -= size
    return groups


def _coarse(table: Floats, query: Query) -> Floats:
    """Return a table with the codes of each bucket summed."""
    for axis, name in enumerate(query.clique):
        if name in query.buckets:
            summed = np.zeros((*table.shape[:axis], query.sizes[name], *table.shape[axis + 1 :]))
            np.add.at(np.moveaxis(summed, axis, 0), np.asarray(query.buckets[name]), np.moveaxis(table, axis, 0))
            table = summed
    return table
