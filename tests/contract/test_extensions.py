"""A user's own mechanism, model, source and column: what is wrong with them is said, as early as it can be."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import chicle
from chicle import Budget, Desk, Ledger, Mechanism, Model, ParameterError, PrivacyError, Records, Schema, SchemaError
from chicle.codecs import Codec
from chicle.columns import Column
from chicle.counting.countable import Countable
from chicle.measurements.measurement import Measurement
from chicle.mechanisms import base as mechanisms
from chicle.mechanisms.base import register_mechanism
from chicle.mechanisms.stages import Setting, Stages, one_way_stage
from chicle.models import IndependentModel, base, register_model
from chicle.releases import unmeasured
from chicle.sources import Source
from chicle.sources.frames import Form

DOMAIN = {"a": 6, "b": 4, "c": 3}
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_FAMILIES", dict(base._FAMILIES))
    monkeypatch.setattr(mechanisms, "BY_NAME", dict(mechanisms.BY_NAME))
    monkeypatch.setattr(unmeasured, "_MECHANISMS", dict(unmeasured._MECHANISMS))


@pytest.fixture
def table() -> Records:
    rng = np.random.default_rng(0)
    return Records({name: rng.integers(size, size=2_000) for name, size in DOMAIN.items()}, DOMAIN)


@dataclass(kw_only=True, eq=False, repr=False)
class OneWays(Mechanism):
    """1-ways, and a model that a test gives."""

    share: float = 1.0

    def stages(self, setting: Setting) -> Stages:
        return Stages.of(one_way_stage(setting, self.share * setting.rho))

    def run(self, desk: Desk) -> Any:
        desk.measure_one_ways(rho=desk.left)
        return self.learn(IndependentModel(), desk)


# --- Mechanisms


def test_stages_above_the_budget_are_refused_before_anything_is_spent(table: Records) -> None:
    ledger = Ledger(Budget(**BUDGET))
    synth = OneWays(**BUDGET, share=1.5)
    with pytest.raises(ParameterError, match=r"cost 1\.5 times its budget"):
        synth.fit(table, ledger=ledger)
    with pytest.raises(ParameterError, match=r"cost 1\.5 times its budget"):
        synth.plan(DOMAIN)
    assert not ledger.events


def test_what_run_returns_is_checked(table: Records) -> None:
    class Nothing(OneWays):
        def run(self, desk: Desk) -> Any:
            desk.measure_one_ways(rho=desk.left)

    class Merged(OneWays):
        def run(self, desk: Desk) -> Any:
            desk.measure_one_ways(rho=desk.left)
            return IndependentModel().fit([Measurement(("a",), np.ones(2), 1.0)], chicle.Domain({"a": 2}))

    class Silent(OneWays):
        def run(self, desk: Desk) -> Any:
            del desk
            return IndependentModel().fit([Measurement(("a",), np.ones(6), 1.0)], chicle.Domain({"a": 6}))

    for wrong, said in ((Nothing, "fitted chicle.Model"), (Merged, "attributes of its desk"), (Silent, "nothing")):
        with pytest.raises(ParameterError, match=said):
            wrong(**BUDGET).fit(table)


def test_a_desk_is_closed_when_its_fit_is_over(table: Records) -> None:
    kept: list[Desk] = []

    class Keeps(OneWays):
        def run(self, desk: Desk) -> Any:
            kept.append(desk)
            return super().run(desk)

    release = Keeps(**BUDGET).fit(table, ledger=Ledger(Budget(epsilon=5, delta=1e-6))).release_
    before = len(release.transcript)
    with pytest.raises(PrivacyError, match="closed"):
        kept[0].measure([("a",)], rho=1e-6)
    kept[0].transcript.entries.clear()
    assert len(release.transcript) == before


def test_names_that_are_taken_are_refused() -> None:
    with pytest.raises(ParameterError, match="there is a mechanism 'Prism' already"):

        @register_mechanism
        class Prism(OneWays): ...

    with pytest.raises(ParameterError, match="family 'graphical' is taken"):
        register_model("graphical")(IndependentModel)
    assert mechanisms.BY_NAME["prism"] is chicle.Prism


def test_set_params_sets_all_or_none() -> None:
    synth = OneWays(**BUDGET)
    with pytest.raises(ParameterError, match="no parameter 'nope'"):
        synth.set_params(epsilon=5.0, nope=1)
    assert synth.epsilon == 1.0


# --- Models


class Typed(IndependentModel):
    """Keeps its state in any type, and in any order of cells."""

    kept: Any = None

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {**super().to_arrays(), "kept": type(self).kept}


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint16", "int8", "bool", "float64"])
def test_the_state_of_a_model_may_be_of_any_plain_type(table: Records, dtype: str, tmp_path: Path) -> None:
    register_model("test: typed")(Typed)
    Typed.kept = np.arange(6).reshape(2, 3).T.astype(dtype)

    class Keeps(OneWays):
        def run(self, desk: Desk) -> Any:
            desk.measure_one_ways(rho=desk.left)
            return self.learn(Typed(), desk)

    Keeps(**BUDGET).fit(table).release_.save(tmp_path / "r.chicle")
    loaded = chicle.load(tmp_path / "r.chicle")
    assert type(loaded.model) is Typed
    Typed.kept = np.array(["a"])
    with pytest.raises(ParameterError, match="'kept' of dtype <U1"):
        loaded.save(tmp_path / "other.chicle")


def test_a_model_of_no_family_is_not_saved(table: Records, tmp_path: Path) -> None:
    class Unregistered(IndependentModel): ...

    class Keeps(OneWays):
        def run(self, desk: Desk) -> Any:
            desk.measure_one_ways(rho=desk.left)
            return self.learn(Unregistered(), desk)

    release = Keeps(**BUDGET).fit(table).release_
    assert len(release.sample(10)) == 10
    with pytest.raises(ParameterError, match="Unregistered has no model family of its own"):
        release.save(tmp_path / "r.chicle")
    assert not list(tmp_path.iterdir())


def test_a_state_has_names_of_its_own(table: Records) -> None:
    class Greedy(IndependentModel):
        def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
            return {"total": np.array(7)}

    model: Model = Greedy().fit(
        [Measurement((name,), np.ones(size), 1.0) for name, size in DOMAIN.items()], table.domain
    )
    with pytest.raises(ParameterError, match="array 'total'; choose another name"):
        model.state()


def test_a_model_whose_fit_failed_is_not_fitted(table: Records) -> None:
    model = IndependentModel()
    with pytest.raises(chicle.DomainError):
        model.fit([Measurement(("a",), np.ones(6), 1.0)], table.domain)
    with pytest.raises(chicle.NotFittedError):
        model.expect([("a",)])


# --- Sources


class Given(Source):
    """Rows that a test gives."""

    def __init__(self, rows: Countable, schema: Schema) -> None:
        super().__init__(schema)
        self._rows = rows

    @property
    def form(self) -> Form:
        return Form("pyarrow")

    def reduce(self, task: Any, columns: Sequence[str]) -> Any:
        raise NotImplementedError

    def countable(self, codec: Codec) -> Countable:
        del codec
        return self._rows


def test_rows_of_a_source_are_those_of_its_schema(table: Records) -> None:
    """Else noise would be too small, and the release would promise more than was done."""
    ledger = Ledger(Budget(**BUDGET))
    several = Schema.from_cardinalities(DOMAIN, max_records_per_person=5)
    with pytest.raises(PrivacyError, match="at most 1 a person, but the schema declares 5"):
        OneWays(**BUDGET).fit(Given(table, several), several, ledger=ledger)
    other = Schema.from_cardinalities({**DOMAIN, "c": 4})
    with pytest.raises(SchemaError, match="do not have the attributes of its codec"):
        OneWays(**BUDGET).fit(Given(table, other), other, ledger=ledger)
    person = Schema(dict(DOMAIN), person="id")
    with pytest.raises(SchemaError, match="does not limit the rows of a person"):
        OneWays(**BUDGET).fit(Given(table, person), person, ledger=ledger)
    assert not ledger.events


# --- Columns


@dataclass(frozen=True, kw_only=True)
class Careless(Column):
    """Quotes a value in an error of its own."""

    type = "careless"

    @property
    def size(self) -> int:
        return 2

    def _check(self) -> None:
        pass

    def _codes(self, values: pa.Array, absent: Any, report: Any) -> npt.NDArray[Any]:
        del absent, report
        return np.array([int(value) for value in values.to_pylist()])

    def _values(self, codes: Any, absent: Any, dtype: Any, rng: Any) -> pa.Array:
        del absent, dtype, rng
        return pa.array(codes)


def test_an_error_inside_a_column_quotes_no_value() -> None:
    schema = Schema({"a": Careless()})
    with pytest.raises(
        SchemaError, match="column 'a' cannot be encoded: its type 'careless' raised a ValueError"
    ) as said:
        chicle.Independent(**BUDGET).fit({"a": ["1", "canary"]}, schema)
    assert "canary" not in str(said.value)
    assert said.value.__cause__ is None
