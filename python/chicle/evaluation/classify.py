"""Train on synthetic, test on real: misclassification by a linear SVM, [P] 6.1.

The real table is split in two halves. A linear SVM on one-hot codes is trained on each table and tested on the second
half. Two figures stand beside it: `floor` is the same SVM trained on the first real half (the paper's NonPriv),
`majority` predicts the most frequent label of that half. A table that scores above `majority` is useless for the task.
At most `MOST` rows train, and as many test.

Needs scikit-learn: ``pip install 'chicle[evaluate]'``.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records
from chicle.evaluation.contest import Contest
from chicle.evaluation.result import Score

__all__ = ["classification_scores"]

MOST = 20_000

Rows = npt.NDArray[np.int64]


def classification_scores(contest: Contest, label: str) -> list[Score]:
    """Return the misclassification rate of a label, predicted from all other attributes."""
    title = f"misclassification of {label}"
    fields: dict[str, Any] = {"key": "misclassification", "title": title, "unit": "share", "source": "[P] 6.1"}
    if len(contest.real.domain) < 2 or len(contest.real) < 2:
        return [Score(value=None, note="needs two attributes and two real rows", **fields)]
    try:
        svm = importlib.import_module("sklearn.svm")
        importlib.import_module("scipy.sparse")
    except ImportError:
        return [Score(value=None, note="skipped: install scikit-learn with pip install 'chicle[evaluate]'", **fields)]
    rng = contest.rng("classification")
    train, test = np.array_split(rng.permutation(len(contest.real)), 2)
    train, test = train[:MOST], test[:MOST]
    features, truth = _one_hot(contest.real, label, test), contest.real[label][test]

    def rate(records: Records, rows: Rows) -> float:
        predicted = _predict(svm, _one_hot(records, label, rows), records[label][rows], features)
        return float((predicted != truth).mean())

    synthetic, _, independent = contest.others
    most = np.bincount(contest.real[label][train]).argmax()
    return [
        Score(
            value=rate(synthetic, rng.permutation(len(synthetic))[:MOST]),
            floor=rate(contest.real, train),
            independent=rate(independent, rng.permutation(len(independent))[:MOST]),
            note="floor: trained on the other half of the real table",
            also={"majority": float((truth != most).mean())},
            **fields,
        )
    ]


def _predict(svm: Any, features: Any, labels: npt.NDArray[Any], asked: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    if len(np.unique(labels)) < 2:
        return np.full(asked.shape[0], labels[0])
    # The primal problem has no randomness and, with one-hot codes, always few enough variables.
    predicted: npt.NDArray[Any] = svm.LinearSVC(dual=False).fit(features, labels).predict(asked)
    return predicted


def _one_hot(records: Records, label: str, rows: Rows) -> Any:  # noqa: ANN401 - a sparse matrix of scipy
    sparse = importlib.import_module("scipy.sparse")
    names = [name for name in records if name != label]
    sizes = [records.domain[name] for name in names]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.stack(
        [records[name][rows].astype(np.int64) + start for name, start in zip(names, starts, strict=False)], axis=1
    )
    ends = np.arange(len(rows) + 1) * len(names)
    return sparse.csr_matrix((np.ones(columns.size), columns.reshape(-1), ends), shape=(len(rows), int(starts[-1])))
