"""A column type of a user's own: one class, registered, that schemas, files, drafts and releases know."""

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import chicle
from chicle import Schema, SchemaError
from chicle.codecs import Codec
from chicle.codecs.labels import value_labels
from chicle.codes import Codes
from chicle.columns import TYPES, Categorical, Column, Draft, Open, RawColumn, Report, register_column, registry
from chicle.columns.base import Mask
from chicle.evaluation.gini import amounts
from chicle.sources import check_table
from chicle.sources.table_files import read_table


@dataclass(frozen=True, kw_only=True)
class Prefix(Column):
    """The first half of IPv4 addresses, such as 192.168; a file of them looks like one of numbers."""

    type = "prefix"
    also = ("ip",)

    first: str
    last: str

    @property
    def size(self) -> int:
        return number(self.last) - number(self.first) + 1

    @property
    def ordered(self) -> bool:
        return True

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{i // 256}.{i % 256}" for i in range(number(self.first), number(self.last) + 1))

    @property
    def starts(self) -> npt.NDArray[Any]:
        return np.arange(number(self.first), number(self.last) + 2)

    def start_of(self, value: object, *, after: bool) -> int:
        return number(str(value)) + after

    @property
    def amounts(self) -> None:
        return None

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.string()

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        texts = [] if raw.texts is None else raw.texts.to_pylist()
        if not texts or not all(is_prefix(text) for text in texts):
            return None
        texts.sort(key=number)
        return Draft(cls(first=texts[0], last=texts[-1], missing=raw.missing), "the first and the last prefix")

    def _check(self) -> None:
        if self.size < 1:
            raise SchemaError("first is after last; swap them")

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        del absent
        codes = np.array([0 if text is None else number(text) - number(self.first) for text in values.to_pylist()])
        if codes.size and (codes.min() < 0 or codes.max() >= self.size):
            report("has a prefix outside its bounds", "widen `first` and `last`")
        return codes

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        del dtype, rng
        return pa.array(self.labels).take(pa.array(codes, mask=absent))


class Name(Categorical):
    """Texts of which upper and lower case are one value."""

    type = "name"

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        return super()._codes(pc.utf8_lower(values), absent, report)


class OpenName(Open):
    """Such texts, yet to be discovered."""

    type = "open name"

    def present(self, values: pa.ChunkedArray, report: Report) -> pa.ChunkedArray:
        return pc.utf8_lower(super().present(values, report))

    def discovered(self, values: Iterable[Any]) -> Name:
        return Name(values=(*values, self.other), other=self.other, missing=self.missing)


def number(prefix: str) -> int:
    high, low = prefix.split(".")
    return 256 * int(high) + int(low)


def is_prefix(text: str) -> bool:
    try:
        ipaddress.IPv4Address(f"{text}.0.0")
    except ValueError:
        return False
    return True


@pytest.fixture
def known() -> Iterator[None]:
    for made in (Prefix, Name, OpenName):
        register_column(made)
    yield
    for made in (Prefix, Name, OpenName):
        del registry._types[made.type]
    del registry._aliases["ip"]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    nets = np.array(["10.0", "10.1", "10.10", "10.100"])[rng.integers(0, 4, 3_000)]
    frame = pd.DataFrame({"net": nets, "bad": rng.random(3_000) < 0.2})
    frame.loc[:40, "net"] = None
    return frame


@pytest.mark.usefixtures("known")
def test_from_a_draft_to_a_loaded_release(tmp_path: Path) -> None:
    frame = table()
    draft = chicle.draft_schema(frame)
    assert draft.columns["net"] == Prefix(first="10.0", last="10.100", missing=True, source="data")
    draft.save(tmp_path / "schema.yaml")
    assert "the first and the last prefix" in (tmp_path / "schema.yaml").read_text(encoding="utf-8")
    schema = Schema.load(tmp_path / "schema.yaml").mark_reviewed(source="the register of networks")
    assert schema.columns == draft.mark_reviewed(source="the register of networks").columns
    assert schema.ordinal == {"net"}
    assert check_table(frame, schema).fits
    narrow = Schema({**schema.columns, "net": {"type": "prefix", "first": "10.0", "last": "10.9", "missing": True}})
    assert "has a prefix outside its bounds" in str(check_table(frame, narrow))

    frame.to_csv(tmp_path / "nets.csv", index=False)
    held = read_table(tmp_path / "nets.csv", schema)["net"]
    assert held.drop_null().unique().to_pylist() == frame["net"].dropna().unique().tolist(), "10.10 is not 10.1"

    synth = chicle.Independent(epsilon=5, delta=1e-9).fit(str(tmp_path / "nets.csv"), schema)
    made = synth.sample(1_000, seed=0)
    assert check_table(made, schema).fits
    assert set(pd.Series(made["net"].to_pylist()).value_counts().index[:4]) == set(frame["net"].dropna())
    synth.release_.save(tmp_path / "nets.chicle")
    again = chicle.load(tmp_path / "nets.chicle")
    assert again.schema.columns["net"] == schema.columns["net"]
    assert again.sample(1_000, seed=0).equals(made)
    assert chicle.evaluate(frame, made, schema).scores


@pytest.mark.usefixtures("known")
def test_what_else_speaks_of_columns() -> None:
    net = {"type": "prefix", "first": "9.254", "last": "10.1", "missing": True, "coarse": ["9.254", "10.0", "10.1"]}
    forbidden = [{"forbid": {"net": {"below": "9.255"}, "bad": True}}]
    schema = Schema({"net": net, "bad": {"type": "boolean"}}, constraints=forbidden)
    assert value_labels(schema, "net") == ["9.254", "9.255", "10.0", "10.1", "missing"]
    assert Codec(schema).domain["net"] == 3
    assert not check_table({"net": ["9.254"], "bad": [True]}, schema).fits
    with pytest.raises(chicle.ParameterError, match="must be a column of numbers; it is prefix"):
        amounts(schema, "net")
    with pytest.raises(SchemaError, match="no type 'ip'; did you mean 'prefix'"):
        Schema({"net": {"type": "ip"}})
    with pytest.raises(SchemaError, match="column 'net': prefix needs 'last'"):
        Schema({"net": {"type": "prefix", "first": "9.254"}})


@pytest.mark.usefixtures("known")
def test_own_values_are_discovered(tmp_path: Path) -> None:
    frame = {"name": ["Ann", "ANN", "ann", "Bo", None] * 400}
    schema = Schema({"name": {"type": "open name", "missing": True}})
    synth = chicle.Independent(epsilon=5, delta=1e-9).fit(frame, schema)
    synth.release_.save(tmp_path / "names.chicle")
    found = chicle.load(tmp_path / "names.chicle").schema.columns["name"]
    assert found == Name(values=("ann", "bo", "other"), other="other", missing=True)
    counts = pd.Series(synth.sample(2_000, seed=0)["name"]).value_counts()
    assert abs(counts["ann"] - 1_200) < 100


def test_what_is_not_registered_is_unknown() -> None:
    assert "prefix" not in TYPES
    with pytest.raises(SchemaError, match="there is no type 'prefix'"):
        Schema({"net": {"type": "prefix", "first": "10.0", "last": "10.1"}})
    assert chicle.draft_schema(table()).columns["net"].type == "number"


@pytest.mark.usefixtures("known")
def test_registration_is_checked() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Second(Prefix):
        type = "prefix"

    @dataclass(frozen=True, kw_only=True)
    class Nameless(Prefix):
        pass

    with pytest.raises(chicle.ParameterError, match="a column type 'prefix' already; give Second another"):
        register_column(Second)
    with pytest.raises(chicle.ParameterError, match="Nameless needs a `type` of its own"):
        register_column(Nameless)
    assert register_column(Prefix) is Prefix, "a cell of a notebook may run twice"
    assert TYPES["prefix"] is Prefix
