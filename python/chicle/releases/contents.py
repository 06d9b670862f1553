"""The contents of a release file: a header of plain data, and arrays by name. Reading checks everything.

Shapes must follow from the schema, every measurement must be paid for by an event of the ledger, if there is one, and
the state of the model must fit the domain. A model is restored by its family; nothing is fitted.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._core import __version__
from chicle.analyses import Coefficients
from chicle.codecs import Codec
from chicle.domain import Domain
from chicle.errors import ArtefactError, ParameterError
from chicle.measurements.contrasts import Contrasts, contrast_sensitivity
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import Merge
from chicle.measurements.persons import PERSONS, PersonRows, cells_of
from chicle.measurements.row_sums import RowSums
from chicle.measurements.scores import Choice, Scores
from chicle.measurements.transcript import Entry, Transcript
from chicle.models.base import Model, model_of
from chicle.partition.paid import not_paid_as_groups
from chicle.privacy.claim import Claim
from chicle.privacy.events import GaussianEvent
from chicle.privacy.guarantee import Guarantee
from chicle.privacy.ledger import Ledger
from chicle.query import Buckets, Functional, Query, QueryLike
from chicle.schema import Schema
from chicle.sources.frames import Form

__all__ = ["FORMAT", "IMPORTED", "KIND", "Contents", "contents_of", "members_of"]

KIND = "chicle release"
FORMAT = 1

IMPORTED = "Imported"
"""The mechanism of releases that somebody else made; they alone have a claim instead of a ledger."""

_KEYS = {
    "kind",
    "format",
    "chicle",
    "protected",
    "mechanism",
    "parameters",
    "notes",
    "schema",
    "form",
    "transcript",
    "fine_one_ways",
    "model",
}
_DTYPES = tuple(np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)) + tuple(
    np.dtype(name) for name in ("float32", "float64", "bool")
)
"""The allowed dtypes of the arrays of a model's state."""

# The header of numpy's format as numpy writes it. Numpy itself would evaluate it as an expression of Python.
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<|][biuf][1248])', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,18},|[0-9]{1,18}(?:, [0-9]{1,18})+)?)\), \} *\n",
    re.DOTALL,
)

_GUARANTEES: Mapping[str, type[Guarantee]] = {one.kind: one for one in (Ledger, Claim)}
"""A header has exactly one of these fields."""


@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of a file; see `chicle.Release`."""

    schema: Schema
    transcript: Transcript
    model: Model
    ledger: Guarantee
    mechanism: str
    parameters: Mapping[str, Any]
    fine_one_ways: tuple[Measurement, ...]
    form: Form
    persons: PersonRows | None = None
    analyses: tuple[Coefficients, ...] = ()


def members_of(contents: Contents) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the header of a release, and its arrays by name."""
    if model_of(getattr(contents.model, "family", type(contents.model).__name__)) is not type(contents.model):
        raise ParameterError(
            f"{type(contents.model).__name__} has no model family of its own; register the class with register_model"
        )
    writer = _Writer(Codec(contents.schema).domain)
    header = {
        "kind": KIND,
        "format": FORMAT,
        "chicle": __version__,
        "protected": contents.ledger.protected,
        "mechanism": contents.mechanism,
        "parameters": _plain(contents.parameters),
        "notes": list(contents.transcript.notes),
        "schema": contents.schema.to_dict(),
        contents.ledger.kind: contents.ledger.to_dict(),
        "form": contents.form.to_dict(),
        "transcript": [writer.entry(entry) for entry in contents.transcript.entries],
        "fine_one_ways": [writer.measurement(one) for one in contents.fine_one_ways],
        "model": {"family": contents.model.family, "parameters": _plain(contents.model.params())},
    }
    if contents.persons is not None:
        values = contents.persons.values.tolist()
        header["persons"] = {"values": values, "sigma": contents.persons.sigma}
    if contents.analyses:
        header["analyses"] = [one.to_dict() for one in contents.analyses]
    for name, array in contents.model.state().items():
        writer.arrays[f"model-{name}"] = np.asarray(array, order="C")
        if np.asarray(array).dtype not in _DTYPES:
            raise ParameterError(f"the state of the model has an array {name!r} of dtype {np.asarray(array).dtype}")
    return header, {name: _npy(array) for name, array in writer.arrays.items()}


def contents_of(header: Mapping[str, Any], members: Mapping[str, bytes]) -> Contents:
    """Check that a header and arrays are a whole release; return its contents."""
    guarantees = [kind for kind in _GUARANTEES if kind in header]
    if len(guarantees) != 1 or set(header) - {"persons", "analyses"} != {*_KEYS, *guarantees}:
        raise ArtefactError("its header has missing or unknown fields")
    schema = Schema.from_dict(header["schema"])
    schema.check_reviewed()
    schema.check_discovered()
    codec = Codec(schema)
    (kind,) = guarantees
    ledger, claimed = _GUARANTEES[kind].from_dict(header[kind]), kind == Claim.kind
    if header["protected"] is not ledger.protected:
        raise ArtefactError("its header and its ledger disagree on whether it is protected")
    if not all(isinstance(text, str) for text in (*header["notes"], header["mechanism"])):
        raise ArtefactError("its notes and its mechanism are not texts")
    if not isinstance(header["parameters"], dict):
        raise ArtefactError("its parameters are not a mapping")
    reader = _Reader(members, protected=ledger.protected)
    entries = [reader.entry(one, codec.domain) for one in header["transcript"]]
    transcript = Transcript(entries, list(header["notes"]))
    fine_one_ways = tuple(reader.measurement(one, schema.domain) for one in header["fine_one_ways"])
    there = [one.clique for one in fine_one_ways]
    # Imported tables may lack some of them.
    coarse = [(name,) for name in codec.coarse if not claimed or (name,) in there]
    if there != coarse or any(one.buckets for one in fine_one_ways):
        raise ArtefactError("its fine 1-ways do not match the coarse columns of its schema")
    if claimed is not (header["mechanism"] == IMPORTED):
        raise ArtefactError("it has a claim instead of a ledger, or a ledger instead of a claim")
    if not transcript.measurements:
        raise ArtefactError("it holds no measurement")
    tables = [*transcript.measurements, *fine_one_ways]
    whole = not_paid_as_groups(tables, ledger, schema.max_records_per_person, codec.domain)
    _check_paid(whole, ledger, schema.max_records_per_person)
    _check_contrasts_paid(transcript.contrasts, ledger, codec.domain, schema.max_records_per_person)
    _check_sums_paid(transcript.row_sums, ledger)
    model = model_of(header["model"]["family"])(**header["model"]["parameters"]).restore(reader.state(), codec.domain)
    form = Form.from_dict(header["form"])
    if form.kind in ("pandas", "polars", "batch") and not set(schema.domain) <= set(form.types):
        raise ArtefactError("its table lacks columns of its schema")
    persons = _persons(header["persons"], schema, ledger) if "persons" in header else None
    answers = tuple(Coefficients.from_dict(one) for one in header.get("analyses", ()))
    if not {one.title for one in answers} <= {one.of for one in transcript.row_sums}:
        raise ArtefactError("it answers an analysis that nothing was released for")
    mechanism, parameters = header["mechanism"], header["parameters"]
    return Contents(schema, transcript, model, ledger, mechanism, parameters, fine_one_ways, form, persons, answers)


def _persons(header: Mapping[str, Any], schema: Schema, ledger: Guarantee) -> PersonRows:
    """Return the numbers of rows of persons, after checking their form and that they were paid for."""
    k = schema.max_records_per_person
    values, sigma = np.array(header["values"], dtype=np.int64), float(header["sigma"])
    if schema.person is None or values.shape != cells_of(k).shape or not (isfinite(sigma) and sigma > 0):
        raise ArtefactError("its numbers of rows of persons do not fit its schema")
    if not isinstance(ledger, Ledger) or not any(
        isinstance(event, GaussianEvent) and (event.purpose, event.sigma) == (PERSONS, sigma) for event in ledger.events
    ):
        raise ArtefactError("its numbers of rows of persons are not in its ledger")
    return PersonRows(values, sigma, k, ledger.protected)


def _check_paid(measurements: list[Measurement], ledger: Guarantee, k: int) -> None:
    """Raise unless every measurement is an event of the ledger."""
    of_sensitivity: dict[int, list[Measurement]] = {}
    for one in measurements:
        of_sensitivity.setdefault(one.query.l2_sensitivity(k), []).append(one)
    for sensitivity, some in of_sensitivity.items():
        tables = [(one.clique, one.sigma, one.values.size) for one in some]
        for clique in ledger.unpaid(tables, l2_sensitivity=sensitivity):
            raise ArtefactError(f"its measurement of {clique!r} is not in its ledger")


def _check_contrasts_paid(contrasts: Sequence[Contrasts], ledger: Guarantee, domain: Domain, k: int) -> None:
    """Raise unless all contrasts are events of the ledger."""
    for one in contrasts:
        sensitivity = contrast_sensitivity(domain.shape(one.clique), k)
        if ledger.unpaid([(one.clique, one.sigma, one.values.size)], l2_sensitivity=sensitivity):
            raise ArtefactError(f"its contrasts of {one.clique!r} are not in its ledger")
    if len({one.clique for one in contrasts}) < len(contrasts):
        raise ArtefactError("it holds the contrasts of a clique twice")


def _check_sums_paid(sums: Sequence[RowSums], ledger: Guarantee) -> None:
    """Raise unless every sum over rows is an event of the ledger."""
    events = ledger.events if isinstance(ledger, Ledger) else ()
    paid = Counter((event.sigma, event.values) for event in events if isinstance(event, GaussianEvent))
    paid.subtract((one.sigma, one.values.size) for one in sums)
    if any(left < 0 for left in paid.values()):
        raise ArtefactError("the sums of its analyses are not in its ledger")


class _Writer:
    """Turns entries into plain data, and their tables into arrays."""

    def __init__(self, domain: Domain) -> None:
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self._domain = domain
        self._known: dict[bytes, str] = {}
        self._tables = 0

    def entry(self, entry: Entry) -> dict[str, Any]:
        if isinstance(entry, Measurement):
            return self.measurement(entry)
        if isinstance(entry, Contrasts):
            header = {"kind": "contrasts", "clique": self._query(entry.clique), "sigma": entry.sigma}
            return {**header, "values": self._table(entry.values)}
        if isinstance(entry, Scores):
            queries = [self._query(one) for one in entry.queries]
            header = {"kind": "scores", "queries": queries, "sigma": entry.sigma, "reference": entry.reference}
            return {**header, "values": self._table(np.asarray(entry.values))}
        if isinstance(entry, Choice):
            header = {"kind": "choice", "query": self._query(entry.query), "epsilon": entry.epsilon}
            signed = {"sign": entry.sign} if entry.sign else {}
            return {**header, "among": entry.among, "context": dict(entry.context), **signed}
        if isinstance(entry, RowSums):
            arrays = {name: self._table(getattr(entry, name)) for name in ("values", "at", "units")}
            return {"kind": "row sums", "what": entry.kind, "of": entry.of, "sigma": entry.sigma, **arrays}
        arrays = {name: self._table(array) for name, array in entry.to_arrays().items()}
        return {"kind": "merge", "arrays": arrays}

    def _query(self, asked: QueryLike) -> Any:  # noqa: ANN401 - positions, or a mapping
        """Return a clique as positions; a query also has its buckets and its group."""
        clique = asked if isinstance(asked, tuple) else asked.clique
        places = [self._domain.position(name) for name in clique]
        if isinstance(asked, tuple):
            return places
        where = {name: int(code) for name, code in asked.where.items()}
        return {"clique": places, "buckets": self._buckets(asked.buckets), "where": where}

    def _buckets(self, given: Buckets) -> dict[str, str]:
        members = {}
        for name, codes in given.items():
            array = np.ascontiguousarray(codes, dtype=np.uint32)
            members[name] = self._known.setdefault(array.tobytes(), f"buckets-{len(self._known)}")
            self.arrays[members[name]] = array
        return members

    def measurement(self, one: Measurement) -> dict[str, Any]:
        buckets = self._buckets(one.buckets)
        header = {"kind": "measurement", "clique": list(one.clique), "sigma": one.sigma, "buckets": buckets}
        if one.where:
            header["where"] = {name: int(code) for name, code in one.where.items()}
        if one.functional is not None:
            header["functional"] = self._table(one.functional.weights)
        return {**header, "values": self._table(np.asarray(one.values, order="C"))}

    def _table(self, array: npt.NDArray[Any]) -> str:
        name = f"values-{self._tables}"
        self._tables += 1
        self.arrays[name] = array
        return name


class _Reader:
    """Checks plain data and arrays, and makes entries of them."""

    def __init__(self, members: Mapping[str, bytes], *, protected: bool) -> None:
        self._members, self._protected = members, protected

    def entry(self, header: Mapping[str, Any], domain: Domain) -> Entry:
        kind = header["kind"]
        if kind == "measurement":
            return self.measurement(header, domain)
        if kind == "contrasts":
            return self._contrasts(header, domain)
        if kind == "scores":
            queries = tuple(self._query(one, domain) for one in header["queries"])
            values, reference = self._array(header["values"], np.float64), header["reference"]
            if not (np.isfinite(values).all() and isfinite(header["sigma"]) and header["sigma"] >= 0):
                raise ArtefactError("its scores are not finite numbers")
            if reference not in ("released", "margins"):
                raise ArtefactError("its scores are distances from an unknown reference")
            return Scores(queries, values, float(header["sigma"]), self._protected, reference)
        if kind == "choice":
            context = {str(name): float(value) for name, value in header["context"].items()}
            query = self._query(header["query"], domain)
            sign = header.get("sign", 0)
            if sign not in (-1, 0, 1):
                raise ArtefactError("a choice of its transcript has a sign that is not -1 or 1")
            return Choice(query, float(header["epsilon"]), int(header["among"]), context, sign)
        if kind == "row sums":
            return self._row_sums(header)
        if kind == "merge":
            dtypes = (np.uint32, np.float64, np.uint8)
            arrays = {name: self._array(member, *dtypes) for name, member in header["arrays"].items()}
            return Merge.from_arrays(domain, arrays)
        raise ArtefactError(f"its transcript has an entry of an unknown kind, {kind!r}")

    def _query(self, header: Any, domain: Domain) -> QueryLike:  # noqa: ANN401 - positions, or a mapping
        names = list(domain)
        places = header["clique"] if isinstance(header, dict) else header
        if not all(0 <= place < len(names) for place in places):
            raise ArtefactError("a query names an attribute that its schema does not have")
        clique = domain.check(tuple(names[place] for place in places))
        if not isinstance(header, dict):
            return clique
        # Buckets of scores may be of merged values, so only their form is checked.
        buckets = {str(name): self._array(member, np.uint32) for name, member in header["buckets"].items()}
        return Query(clique, buckets, {str(name): int(code) for name, code in header["where"].items()})

    def measurement(self, header: Mapping[str, Any], domain: Domain) -> Measurement:
        sigma, clique = header["sigma"], domain.check(tuple(header["clique"]))
        if not isinstance(sigma, float):
            raise ArtefactError(f"the sigma of {clique!r} is no number above 0")
        buckets = {name: self._array(member, np.uint32) for name, member in header["buckets"].items()}
        values = self._array(header["values"], np.int64, np.float64)
        weights = None if "functional" not in header else Functional(self._array(header["functional"], np.int64))
        where = {str(name): int(code) for name, code in header.get("where", {}).items()}
        one = Measurement(clique, values, sigma, self._protected, buckets, where, weights)
        query = one.query.checked(domain)
        if values.shape != query.shape(domain) or not np.isfinite(values).all() or not (isfinite(sigma) and sigma > 0):
            raise ArtefactError(f"the table of {clique!r} does not fit its schema, or is not finite")
        return replace(one, buckets=query.buckets)

    def _row_sums(self, header: Mapping[str, Any]) -> RowSums:
        values = self._array(header["values"], np.int64)
        at, units = (self._array(header[name], np.float64) for name in ("at", "units"))
        if not (
            isinstance(header["of"], str)
            and header["what"] in ("score", "products")
            and np.isfinite([*at, *units, header["sigma"]]).all()
        ):
            raise ArtefactError("the sums of its analyses are not finite numbers")
        return RowSums(header["of"], header["what"], values, float(header["sigma"]), at, units, self._protected)

    def _contrasts(self, header: Mapping[str, Any], domain: Domain) -> Contrasts:
        clique, sigma = self._query(header["clique"], domain), header["sigma"]
        values = self._array(header["values"], np.int64)
        if not isinstance(clique, tuple) or values.shape != tuple(size - 1 for size in domain.shape(clique)):
            raise ArtefactError("its contrasts do not fit its schema")
        if not (values.size and isinstance(sigma, float) and isfinite(sigma) and sigma > 0):
            raise ArtefactError(f"its contrasts of {clique!r} have no noise, or no values")
        return Contrasts(clique, values, sigma, self._protected)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        names = [name for name in self._members if name.startswith("model-") and name.endswith(".npy")]
        return {name[len("model-") : -len(".npy")]: self._array(name[: -len(".npy")], *_DTYPES) for name in names}

    def _array(self, member: str, *dtypes: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array, after checking its header."""
        data = self._members[f"{member}.npy"]
        begin = 10 + int.from_bytes(data[8:10], "little")
        found = _NPY.fullmatch(data[:begin])
        if found is None:
            raise ArtefactError("a table is in an unknown format")
        dtype, shape = np.dtype(found[1].decode()), tuple(map(int, found[2].replace(b",", b" ").split()))
        if dtype not in dtypes or len(data) - begin != dtype.itemsize * prod(shape):
            raise ArtefactError("the length or type of a table does not match its own header")
        return np.frombuffer(data, dtype, offset=begin).reshape(shape).astype(dtype.newbyteorder("="))


def _npy(array: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array.astype(array.dtype.newbyteorder("<")), (1, 0), allow_pickle=False)
    return file.getvalue()


def _plain(value: object) -> Any:  # noqa: ANN401 - for JSON
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} is no plain data")
