"""What a fit does with public data beside what it released: one step, the same for every mechanism."""

from __future__ import annotations

from chicle.measurements.desk import Desk
from chicle.measurements.public_rows import PublicRows
from chicle.models.base import Model
from chicle.models.evidence import EvidenceModel

__all__ = ["NO_PUBLIC", "beside_public"]

NO_PUBLIC = (
    "{} cannot use public data: its records do not come from tables of counts, which public rows could improve; leave "
    "out `public`, or use Prism, or PMWPub, which gives weights to public rows"
)


def beside_public(model: Model, desk: Desk, public: PublicRows) -> Model:
    """Return the model that public rows improve, or the mechanism's own if releases do not bear them out.

    Parameters
    ----------
    model
        The mechanism's own model, fitted to what its desk released.
    desk
        The desk, for its released tables; nothing more is asked there.
    public
        The public rows.
    """
    if not set(desk.original) & set(public.records.domain):  # a desk without the columns of partitions may have none
        return model
    evidence = EvidenceModel.beside(model, public)
    evidence.fit(
        desk.targets,
        desk.original,
        merge=model.merge,
        amounts=desk.amounts,
        start=model,
        threads=desk.threads,
    )
    desk.note(f"public data: {evidence.belief}")
    return evidence if evidence.belief.used else model
