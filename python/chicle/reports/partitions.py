"""Partitions: the largest and smallest by the release, and the worst and best where the real table is known."""

from __future__ import annotations

import numpy as np

from chicle._html import Markup, cut, table, tag
from chicle.codecs.labels import value_labels
from chicle.partition.model import PartitionedModel
from chicle.releases.release import Release
from chicle.reports.facts import Facts

__all__ = ["partitions"]

_LISTED = 10


def partitions(facts: Facts) -> Markup | None:
    """Return the section on partitions; None if the table has none."""
    errors = None if facts.evaluation is None else facts.evaluation.partitions
    if errors is not None:
        head, *rows = errors.table(_LISTED)
        said = (
            "Mean distances inside partitions: of 1-ways, pairs and triples of the other columns, each table as shares "
            "of its own rows. Small partitions are farther off, as any sample of few rows is."
        )
        listed = table(head, [[tag("bdi", cut(name, 120)), *rest] for name, *rest in rows])
        return tag("section", tag("h2", "Partitions"), tag("p", said), listed, id="partitions")
    if facts.release is None or not isinstance(facts.release.model, PartitionedModel):
        return None
    said = next((note for note in facts.release.notes if "partitions by" in note), "")
    listed = table([" x ".join(facts.release.partition), "estimated rows"], _sizes(facts.release, facts.release.model))
    return tag("section", tag("h2", "Partitions"), tag("p", said), listed, id="partitions")


def _sizes(release: Release, model: PartitionedModel) -> list[list[Markup | str]]:
    """Return the largest and the smallest partitions with their released sizes."""
    labels = [value_labels(release.schema, name) for name in release.partition]
    order = np.argsort(-model.sizes, kind="stable")
    shown = order if len(order) <= 2 * _LISTED else np.concatenate([order[:_LISTED], order[-_LISTED:]])
    places = np.unravel_index(shown, release.domain.shape(release.partition))
    names = [
        ", ".join(column[code] for column, code in zip(labels, codes, strict=True))
        for codes in zip(*places, strict=True)
    ]
    return [[tag("bdi", cut(name, 120)), f"{model.sizes[i]:,.0f}"] for name, i in zip(names, shown, strict=True)]
