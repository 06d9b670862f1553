"""The switches of Prism's steps, and of AIM over records, which takes the same steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

from chicle._checks import integer
from chicle.denoising.tables import PULL
from chicle.errors import ParameterError
from chicle.models.denoised import DenoisedModel
from chicle.models.descent import NamedStart
from chicle.selection.expected_error import CAUTION
from chicle.selection.levels import SIZES

__all__ = ["PrismOptions", "check_options"]

_Model = TypeVar("_Model", bound=DenoisedModel)


@dataclass(frozen=True, kw_only=True)
class PrismOptions:
    """The steps of Prism, each with a switch: what an ablation turns off one by one.

    Attributes
    ----------
    counting
        Share of the budget for the number of records.
    one_ways
        Share of the 1-ways; by default the rule of `chicle.selection.share`.
    selection
        Share of what is then left for the scores of pairs.
    theta
        Values below this many sigmas are merged.
    sizes
        Buckets of the levels; ``()`` for none.
    caution
        The factor by which the error that a coarse table hides is multiplied.
    order
        Most attributes of a set: 4, 3, or 2 for no packing.
    triple_bonus, triple_error
        The worth of a covered triple while pairs are packed, and the error of one that is not covered, as parts of the
        mean distance of pairs of small attributes from independence; ``triple_error=0`` covers none on purpose.
    absorb, low_rank
        Whether margins are absorbed into 1-ways, and whether tables share directions.
    pull
        How much of the way to its shrunk value each cell goes; 0 for no shrinkage.
    start
        Where descent starts: ``"mixed"``, ``"tree"`` or ``"independent"``.
    sweeps
        Most sweeps of descent; it stops earlier once a sweep lowers the loss by less than a tenth.
    threshold
        The gain that a move must have, as a share of its cost.
    significance
        By how many standard deviations of the noise a move's gain must stand out.
    replicate
        Descent runs on n over this many records, which are then repeated and refined by one more sweep: less time for
        a little more sampling error in larger cliques. By default 1, 2 or 4, so that a sweep takes seconds.
    first_stage
        The share of the first stage of what is left after the 1-ways, 1 for no second stage; by default the rule of
        `chicle.selection.second_share`.
    contrasts
        Whether pairs and triples are measured by contrasts, in two stages; by default where the rule of
        `chicle.selection.second_share` says that it pays, unless `first_stage` is given.
    """

    counting: float = 0.001
    one_ways: float | None = None
    selection: float = 0.02
    theta: float = 3.0
    sizes: tuple[int, ...] = SIZES
    caution: float = CAUTION
    order: int = 4
    triple_bonus: float = 0.2
    triple_error: float = 0.3
    absorb: bool = True
    low_rank: bool = True
    pull: float = PULL
    start: NamedStart = "mixed"
    sweeps: int = 12
    threshold: float = 0.3
    significance: float = 0.35
    replicate: int | None = None
    first_stage: float | None = None
    contrasts: bool | None = None

    def __post_init__(self) -> None:
        for name in ("counting", "selection", "one_ways"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ParameterError(f"{name} must be a share between 0 and 1, not {value!r}")
        for name in ("theta", "caution", "triple_bonus", "triple_error"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ParameterError(f"{name} must be finite and at least 0, not {getattr(self, name)!r}")
        if not isinstance(self.sizes, tuple):
            raise ParameterError(f"sizes must be a tuple of numbers of buckets, not {self.sizes!r}")
        for size in self.sizes:
            integer("a level's size", size, 2)
        integer("order", self.order, 2, 4)
        if self.first_stage is not None and not 0 < self.first_stage <= 1:
            raise ParameterError(f"first_stage must be a share above 0, at most 1, not {self.first_stage!r}")
        if self.contrasts is not None and not isinstance(self.contrasts, bool):
            raise ParameterError(f"contrasts must be true, false or None, not {self.contrasts!r}")
        if self.contrasts and self.first_stage is not None:
            raise ParameterError("contrasts are measured without sets; leave out contrasts or first_stage")
        self.model(DenoisedModel)

    def model(self, family: type[_Model], **more: Any) -> _Model:  # noqa: ANN401 - parameters of the family
        """Return a model of Prism's tables, not fitted yet."""
        return family(
            **more,
            absorb=self.absorb,
            low_rank=self.low_rank,
            pull=self.pull,
            start=self.start,
            sweeps=self.sweeps,
            threshold=self.threshold,
            significance=self.significance,
            replicate=self.replicate,
        )


def check_options(options: PrismOptions | None) -> PrismOptions:
    """Return the options of Prism; the defaults for ``None``."""
    if options is None:
        return PrismOptions()
    if not isinstance(options, PrismOptions):
        raise ParameterError(f"options must be PrismOptions, not a {type(options).__name__}")
    return options
