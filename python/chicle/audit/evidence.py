"""What an auditor notes of a release: everything in it that may depend on the private rows, as numbers and words.

An auditor knows both tables. So for each table of noisy counts there is a best statistic, the log-likelihood ratio of
what was released: ``(<values - others, canary> - |canary|^2 / 2) / sigma^2``, with the auditor's own counts of the
others and of the canary. It is added up over all tables of a release, also where later tables depend on earlier ones.
Contrasts are such tables too, each number with a noise of its own.
All else is noted as it is, and `chicle.audit.attacks` learns what it tells: cells, scores, sums, the number of rows,
the canary's rows in a sample; and as words the choices, the schema, the notes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from chicle.audit.pairs import Integers, Pair
from chicle.counting.records import Records
from chicle.measurements.contrasts import Contrasts, contrast_weights, contrasts_of
from chicle.measurements.measurement import Measurement
from chicle.measurements.row_sums import RowSums
from chicle.measurements.scores import Choice, Scores
from chicle.privacy.ledger import Ledger
from chicle.query import Query, as_query
from chicle.releases.release import Release

__all__ = ["Evidence", "Notebook"]

Floats = npt.NDArray[np.float64]

_MOST_CELLS = 64  # of a table that are noted one by one
_SAMPLE = 60  # rows of a sample


@dataclass(frozen=True)
class Evidence:
    """What was noted of some fits on the same table.

    Attributes
    ----------
    ratios
        For each fit, the log-likelihood ratio of its tables.
    numbers, words
        By name, what was noted of each fit: nan or 0 where a fit had nothing of that name. Words are hashed.
    spent, discovered
        For each fit, what its ledger says was spent.
    gaussian
        Whether the ledgers account in Gaussian DP.
    """

    ratios: Floats
    numbers: dict[str, Floats]
    words: dict[str, Integers]
    spent: Floats
    discovered: Floats
    gaussian: bool

    @property
    def fits(self) -> int:
        """How many fits there are."""
        return self.ratios.size

    @classmethod
    def joined(cls, parts: Iterable[Evidence]) -> Evidence:
        """Return the evidence of several parts as one."""
        parts = list(parts)
        named = {name for part in parts for name in part.numbers}
        said = {name for part in parts for name in part.words}
        return cls(
            np.concatenate([part.ratios for part in parts]),
            {
                name: np.concatenate([part.numbers.get(name, np.full(part.fits, np.nan)) for part in parts])
                for name in sorted(named)
            },
            {
                name: np.concatenate([part.words.get(name, np.zeros(part.fits, np.int64)) for part in parts])
                for name in sorted(said)
            },
            np.concatenate([part.spent for part in parts]),
            np.concatenate([part.discovered for part in parts]),
            all(part.gaussian for part in parts),
        )

    def part(self, which: slice) -> Evidence:
        """Return the evidence of some of the fits."""
        return Evidence(
            self.ratios[which],
            {name: values[which] for name, values in self.numbers.items()},
            {name: values[which] for name, values in self.words.items()},
            self.spent[which],
            self.discovered[which],
            self.gaussian,
        )


@dataclass
class Notebook:
    """Notes evidence of one fit after another.

    Parameters
    ----------
    pair
        The two tables; which of them was fitted is not told.
    """

    pair: Pair
    _known: dict[object, tuple[Integers, Integers]] = field(default_factory=dict)
    _parts: list[Evidence] = field(default_factory=list)

    def note(self, release: Release) -> None:
        """Note one release."""
        ratio, numbers, words = 0.0, dict[str, float](), dict[str, str]()
        seen: Counter[str] = Counter()
        for entry in release.transcript.entries:
            kind = type(entry).__name__
            place = seen[kind]
            seen[kind] += 1
            if isinstance(entry, (Measurement, Contrasts)):
                ratio += self._ratio(entry)
                if entry.values.size <= _MOST_CELLS:
                    name = f"contrast {entry.clique!r}" if isinstance(entry, Contrasts) else f"cell {entry.query.key!r}"
                    numbers |= {f"{name} {seen[name]} {i}": float(x) for i, x in enumerate(entry.values.flat)}
                    seen[name] += 1
            elif isinstance(entry, Scores):
                pairs = zip(entry.cliques, entry.values.tolist(), strict=True)
                numbers |= {f"score {place} {clique!r}": value for clique, value in pairs}
            elif isinstance(entry, Choice):
                words[f"choice {place}"] = repr((as_query(entry.query).key, entry.sign))
            elif isinstance(entry, RowSums):
                numbers |= {f"sum {place} {i}": float(x) for i, x in enumerate(entry.values)}
        for i, one in enumerate(release.fine_one_ways):
            numbers |= {f"fine {i} {j}": float(x) for j, x in enumerate(one.values.flat)}
        if release.persons is not None:
            numbers |= {f"persons {i}": float(x) for i, x in enumerate(release.persons.values)}
        words["schema"] = json.dumps(release.schema.to_dict(), default=str, sort_keys=True)
        words["notes"] = "\n".join(release.notes)
        numbers["rows"] = float(release.total)
        numbers["canary in a sample"] = self._sampled(release)
        ledger = release.ledger
        assert isinstance(ledger, Ledger)  # noqa: S101 - of a fit, which pays
        self._parts.append(
            Evidence(
                np.array([ratio]),
                {name: np.array([value]) for name, value in numbers.items()},
                {name: np.array([_hash(word)]) for name, word in words.items()},
                np.array([ledger.spent]),
                np.array([ledger.discovered]),
                ledger.budget.accounting == "gdp",
            )
        )

    def evidence(self) -> Evidence:
        """Return all that was noted."""
        return Evidence.joined(self._parts)

    def _ratio(self, one: Measurement | Contrasts) -> float:
        """Return the log-likelihood ratio of a table, with the canary to without; 0 where codes are not known."""
        if not self.pair.coded:
            return 0.0
        others, canary = self._counts(as_query(one.clique) if isinstance(one, Contrasts) else one.query)
        sigmas: float | Floats = one.sigma
        if isinstance(one, Contrasts):
            sigmas = one.sigma * contrast_weights(others.shape)
            others, canary = contrasts_of(others), contrasts_of(canary)
        released, known, moved = one.values / sigmas, others / sigmas, canary / sigmas
        return float(((released - known) * moved).sum() - (moved * moved).sum() / 2)

    def _counts(self, query: Query) -> tuple[Integers, Integers]:
        """Return the auditor's counts of the others, and of the canary."""
        if (key := query.key) not in self._known:
            others, canary = (self.pair.counts(query, rows) for rows in (self.pair.others, self.pair.canary))
            self._known[key] = others, canary
        return self._known[key]

    def _sampled(self, release: Release) -> float:
        """Return how many rows of a sample are like the canary's."""
        sample = release.sample(_SAMPLE, seed=0, threads=1)
        if not isinstance(sample, Records):
            return 0.0
        same = np.ones(len(sample), dtype=np.bool_)
        for name, values in self.pair.canary.items():
            same &= sample[name] == values[0]
        return float(same.sum())


def _hash(word: str) -> int:
    """Return a number for a word, the same in every process, never 0."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=7).digest(), "big") + 1
