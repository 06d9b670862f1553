"""Rules over many columns: against a naive reading of each row, and no synthetic row breaks one."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Schema, SchemaError

FLAGS = ["a", "b", "c", "d", "e"]
LEVELS = dict.fromkeys(FLAGS, ("off", "low", "high")) | {"d": ("off", "low"), "e": ("off",)}
COLUMNS: dict[str, Any] = {
    "med": {"type": "categorical", "values": ["no", "yes"]},
    **{name: {"type": "categorical", "values": levels} for name, levels in LEVELS.items()},
}


def holds(rule: dict[str, Any], row: dict[str, str]) -> bool:
    """A rule, read naively."""
    if any(row[name] != value for name, value in rule.get("if", {}).items()):
        return True
    (kind,) = set(rule) - {"if"}
    number = sum(row[name] in rule[kind]["are"] for name in rule[kind]["columns"])
    of = len(rule[kind]["columns"])
    low, high = rule[kind].get("min", 0), rule[kind].get("max", of)
    return bool({"any": number > 0, "all": number == of, "none": number == 0, "count": low <= number <= high}[kind])


@given(
    kind=st.sampled_from(["any", "all", "none", "count"]),
    flags=st.lists(st.sampled_from(FLAGS), min_size=2, unique=True),
    are=st.lists(st.sampled_from(["off", "low", "high"]), min_size=1, max_size=2, unique=True),
    when=st.sampled_from([None, "no", "yes"]),
    bounds=st.tuples(st.integers(0, 2), st.integers(2, 4)),
)
def test_a_count_is_read_as_it_is_written(
    kind: str, flags: list[str], are: list[str], when: str | None, bounds: tuple[int, int]
) -> None:
    rule: dict[str, Any] = {kind: {"columns": flags, "are": are}}
    if kind == "count":
        rule[kind] |= {"min": bounds[0], "max": bounds[1]}
    if when is not None:
        rule["if"] = {"med": when}
    labels = [("no", "yes"), *LEVELS.values()]
    if any(all(value not in LEVELS[name] for name in flags) for value in are):
        with pytest.raises(SchemaError, match="is not one of its values"):
            Schema(COLUMNS, constraints=[rule])
        return
    if not any(holds(rule, dict(zip(COLUMNS, row, strict=True))) for row in product(*labels)):
        with pytest.raises(SchemaError, match="no row satisfies all constraints"):
            Schema(COLUMNS, constraints=[rule])
        return
    schema = Schema(COLUMNS, constraints=[rule])
    assert Schema.from_dict(schema.to_dict()) == schema
    (one,) = schema.constraints
    rows = list(product(*labels))
    codes = {
        name: np.array([labels[i].index(row[i]) for row in rows], dtype=np.uint8) for i, name in enumerate(COLUMNS)
    }
    expected = [holds(rule, dict(zip(COLUMNS, row, strict=True))) for row in rows]
    assert one.holds(codes).tolist() == expected
    # What follows for two columns is true of every row that is allowed, and of no smaller set of cells.
    for implied in one.implied:
        allowed = {name: codes[name][np.array(expected)] for name in codes}
        assert implied.holds(allowed).all()
        cells = {
            tuple(implied.classes[axis][code] for axis, code in enumerate(pair))
            for pair in zip(*(allowed[name] for name in implied.columns), strict=True)
        }
        if all(0 < classes.mean() < 1 for classes in one.classes):  # no column that all rows have, or none
            assert cells == {tuple(cell) for cell in np.argwhere(implied.allowed).tolist()}


def treated(n: int) -> dict[str, Any]:
    """Twenty drugs, most of them rare, and whether any is taken."""
    rng = np.random.default_rng(0)
    rates = np.concatenate([[0.5, 0.2, 0.1], np.geomspace(0.05, 0.001, 17)])
    flags = {f"drug{i}": (rng.random(n) < rate).astype(int) for i, rate in enumerate(rates)}
    return {**flags, "med": np.stack(list(flags.values())).any(axis=0).astype(int), "sex": rng.integers(0, 2, n)}


@pytest.mark.parametrize("mechanism", ["Prism", "MST", "Independent"])
def test_no_row_breaks_a_rule_over_twenty_drugs(mechanism: str) -> None:
    table = treated(5_000)
    drugs = [name for name in table if name.startswith("drug")]
    rules = [
        {"if": {"med": 0}, "none": {"columns": drugs, "are": 1}},
        {"if": {"med": 1}, "any": {"columns": drugs, "are": 1}},
    ]
    schema = Schema(dict.fromkeys(table, 2), constraints=rules)
    made = getattr(chicle, mechanism)(epsilon=1, delta=1e-9).fit(table, schema).sample(seed=0)
    rows = {name: np.asarray(made[name]) for name in table}
    assert (np.stack([rows[name] for name in drugs]).any(axis=0) == (rows["med"] == 1)).all()
    for name in drugs:  # mending takes from rare flags no more than noise does
        assert rows[name].mean() == pytest.approx(np.mean(table[name]), abs=0.05)
    wrong = {**table, "med": 1 - table["med"]}
    with pytest.raises(SchemaError, match="violates the constraint `if` on 'med' and 'drug0' and 'drug1' and 18 more"):
        chicle.Independent(epsilon=1, delta=1e-9).fit(wrong, schema)


def test_drugs_need_not_have_the_same_values() -> None:
    """A hospital's 23 drugs: some are never reduced, two never given."""
    levels = [["No", "Steady", "Up", "Down"], ["No", "Steady"], ["No"]]
    drugs = {f"drug{i}": {"type": "categorical", "values": levels[min(i // 15, 2)]} for i in range(32)}
    each = {"columns": list(drugs), "are": ["Steady", "Up", "Down"]}
    with pytest.raises(SchemaError, match="it is about 31 columns; a count is about at most 24"):
        Schema({"med": 2, **drugs}, constraints=[{"if": {"med": 0}, "none": each}])
    del each["columns"][:7]
    rules = [{"if": {"med": 0}, "none": each}, {"if": {"med": 1}, "any": each}]
    schema = Schema({"med": 2, **drugs}, constraints=rules)
    codes = {name: np.zeros(2, dtype=np.uint8) for name in drugs} | {"med": np.array([0, 1])}
    for rule, held in zip(schema.constraints, [[True, True], [True, False]], strict=True):
        assert len(rule.columns) == 24
        assert rule.holds(codes).tolist() == held
    with pytest.raises(SchemaError, match="column 'drug7': 'Stedy' is not one of its values"):
        Schema({"med": 2, **drugs}, constraints=[{"any": {**each, "are": ["Stedy", "Up"]}}])


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"any": ["a", "b"]}, "any must be a mapping such as"),
        ({"any": {"columns": ["a", "b"], "are": "low", "min": 1}}, "any has no 'min'"),
        ({"any": {"columns": ["a", "b"], "are": "lo"}}, "column 'a'"),
        ({"any": {"columns": ["a", "x"], "are": "low"}}, "'x' is not a modelled column"),
        ({"count": {"columns": ["a", "b"], "are": "low", "min": 3, "max": 1}}, "count must have a `min`"),
        ({"any": {"columns": ["a", "b"], "are": "low"}, "none": {"columns": ["a", "b"], "are": "low"}}, "it has "),
        ({"count": {"columns": ["a", "b"], "are": "low", "min": 5}}, "count must have a `min`|no row satisfies"),
    ],
)
def test_counts_that_do_not_fit(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema(COLUMNS, constraints=[rule])
