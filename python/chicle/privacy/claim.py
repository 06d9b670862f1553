"""A claim: the privacy of a release that was not made by chicle, in the words of those who made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chicle.domain import Clique
from chicle.errors import ArtefactError, PrivacyError
from chicle.privacy.events import Event
from chicle.privacy.guarantee import Entry, Guarantee, Terms

__all__ = ["Claim"]


@dataclass(frozen=True, repr=False)
class Claim(Guarantee):
    """Privacy claimed by somebody else. chicle added no noise, spent nothing, and cannot verify it.

    A claim is not a ledger: it has no budget and pays for nothing.

    Parameters
    ----------
    text
        What is promised to whom, and by whom.

    Examples
    --------
    >>> Claim("(1, 1e-6)-DP for one household, by the bureau, report 12")
    claimed by others, not verified by chicle: (1, 1e-6)-DP for one household, by the bureau, report 12
    """

    text: str
    kind: ClassVar[str] = "claim"

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise PrivacyError(
                "claim must say in words which privacy these marginals have and who says so; chicle cannot know it"
            )
        object.__setattr__(self, "text", " ".join(self.text.split()))

    @property
    def budget(self) -> None:
        """None: chicle spent nothing."""
        return

    @property
    def protected(self) -> bool:
        """True, as claimed: chicle accepts no table with test noise under a claim."""
        return True

    @property
    def entries(self) -> tuple[Entry, ...]:
        """None of chicle's releases."""
        return ()

    def check(self, events: Iterable[Event]) -> None:
        """Raise `PrivacyError`: a claim pays for nothing."""
        del events
        raise PrivacyError(
            f"a claim cannot pay for a release; it only says what somebody else promised: {self.text}. "
            "Open a chicle.Ledger with a budget"
        )

    def unpaid(self, tables: Iterable[tuple[Clique, float, int]], *, l2_sensitivity: float) -> list[Clique]:
        """Return nothing: those who make the claim account for all tables."""
        del tables, l2_sensitivity
        return []

    def summary(self) -> str:
        """Return the claim, marked as somebody else's."""
        return f"claimed by others, not verified by chicle: {self.text}"

    def figures(self) -> dict[str, Any]:
        """Return the claim as plain data for programs."""
        return {"protected": self.protected, "claim": self.text}

    def terms(self, max_records_per_person: int) -> Terms:
        """Return the claim in words, for a report; those who make it answer for the rows of a person."""
        del max_records_per_person
        return Terms(
            promise="claimed by others",
            condition="",
            detail=self.text,
            caveat="As safe as the marginals it was computed from: chicle did not make them and cannot verify the "
            "claim about them.",
            facts=(
                ("Claim", self.text),
                ("Verified by chicle", "no: chicle added no noise, spent no budget and cannot verify the claim"),
            ),
            assumptions=("The claim is true.",),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as plain data."""
        return {"text": self.text}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Claim:
        """Return the claim that `to_dict` wrote."""
        if not isinstance(data, Mapping) or set(data) != {"text"}:
            raise ArtefactError("this is not a claim written by chicle: its only field must be 'text'")
        return cls(data["text"])

    def __repr__(self) -> str:
        return self.summary()
