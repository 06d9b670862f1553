"""Guard rails: weak budgets need an explicit word; readers are told what a budget means and what is assumed."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import chicle
from chicle import Ledger, PrivacyError, Schema
from chicle.cli import main
from chicle.privacy import Budget
from chicle.privacy.strength import in_words, weakness

ROWS = 500
SCHEMA: dict[str, Any] = {"columns": {"a": {"type": "boolean"}, "b": {"type": "integer", "min": 0, "max": 9}}}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.random(ROWS) < 0.5, "b": rng.integers(0, 10, ROWS)})


@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": 10.1, "delta": 1e-9},
        {"epsilon": 1, "delta": 1e-5},
        {"rho": 5.0},
        {"mu": 3.0},
        {"epsilon": 1, "delta": 1e-4, "accounting": "zcdp"},
    ],
    ids=str,
)
def test_a_weak_budget_needs_an_explicit_word(budget: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    synth = chicle.Independent(**budget)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "debit", lambda *_: pytest.fail("budget was spent"))
        with pytest.raises(PrivacyError, match=r"allow_weak=True \(--allow-weak\): nothing was spent"):
            synth.fit(frame(), SCHEMA)
    assert "WEAK" in str(synth.plan({"a": 2})) or "rows, as assumed" in str(weakness(synth.budget, None))
    synth.set_params(allow_weak=True).fit(frame(), SCHEMA)
    assert synth.ledger_.spent > 0


def test_delta_is_compared_with_the_declared_rows_and_not_with_the_private_ones() -> None:
    """The same refusal for any number of rows: it must not tell on which side of 1/(10 delta) that lies."""
    synth = chicle.Independent(epsilon=1, delta=1e-5)
    for rows in (1, 20_000):
        table = pd.concat([frame()] * (rows // ROWS + 1))[:rows]
        with pytest.raises(PrivacyError, match=r"1e-05 for 10,000 rows, as assumed; .* declare about how many rows"):
            synth.fit(table, SCHEMA)
    synth.fit(frame(), {**SCHEMA, "data": {"rows": 600}})
    with pytest.raises(PrivacyError, match=r"delta 1e-05 is not below 1/\(10 n\), which is 1e-06 for 100,000 rows"):
        synth.fit(frame(), {**SCHEMA, "data": {"rows": 100_000}})


def test_after_the_fit_delta_is_compared_with_the_released_estimate() -> None:
    table = pd.concat([frame()] * 400)  # 200,000 rows: 1/(10 n) is 5e-7
    synth = chicle.Independent(epsilon=1, delta=9e-7)
    with pytest.warns(UserWarning, match=r"delta 9e-07 is not below 1/\(10 n\), which is 5e-07 for about (199|200),"):
        synth.fit(table, SCHEMA)
    assert len(synth.release_.weakness) == 1
    assert chicle.Independent(epsilon=1, delta=9e-9).fit(table, SCHEMA).release_.weakness == []


@pytest.mark.parametrize(("epsilon", "factor"), [(0.1, "1.11"), (1, "2.7"), (5, "148"), (10, "22,026")])
def test_epsilon_in_words(epsilon: float, factor: str) -> None:
    said = f"odds about one person change by at most a factor of {factor}, except with probability "
    budget = Budget(epsilon=epsilon, delta=1e-9)
    assert said in in_words(budget)
    assert said in str(Ledger(budget))
    assert said in str(chicle.Independent(epsilon=epsilon, delta=1e-9).plan({"a": 2}))


def page_of(release: chicle.Release, folder: Path) -> str:
    return chicle.report(folder / "page.html", release).read_text(encoding="utf-8")


def test_the_page_shows_what_is_declared_and_claims_nothing_else(tmp_path: Path) -> None:
    told = {
        "data": {"name": "Survey of visits", "date": "spring 2024", "rows": 500},
        "columns": {
            "a": {"type": "boolean"},
            "b": {"type": "integer", "min": 0, "max": 9, "source": "questionnaire 2019, item 4"},
        },
    }
    ledger = Ledger(Budget(epsilon=2, delta=1e-9))
    budget: dict[str, Any] = {"epsilon": 1, "delta": 1e-9}
    first = chicle.Independent(**budget).fit(frame(), told, ledger=ledger).release_
    page = page_of(chicle.Independent(**budget).fit(frame(), told, ledger=ledger).release_, tmp_path)
    for said in (
        "Survey of visits",
        "spring 2024",
        "questionnaire 2019, item 4",
        "min: 0; max: 9",
        f"{len(first.ledger.entries) // 2} earlier releases about the same people are in the same ledger",
        "a factor of 7.4",
        "The schema names a public source for the declaration of every column",
    ):
        assert said in page
    assert "none was copied from the data" not in page
    assert "Safe to publish:" in page
    page = page_of(chicle.Independent(**budget).fit(frame(), SCHEMA).release_, tmp_path)
    assert "that they are public is its author" in page
    weak = chicle.Independent(epsilon=20, delta=1e-9, allow_weak=True).fit(frame(), SCHEMA).release_
    assert "WEAK: epsilon 20 is above 10" in page_of(weak, tmp_path)


def test_an_assumption_about_persons_is_said_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    frame().assign(visit=range(ROWS)).to_csv("t.csv", index=False)
    said = "one row a person is an ASSUMPTION"
    declared = "columns: {visit: {type: identifier}, a: {type: boolean}, b: {type: integer, min: 0, max: 9}}"
    Path("t.yaml").write_text(declared, encoding="utf-8")
    synth = ["synth", "t.csv", "-s", "t.yaml", "-o", "o.csv", "--epsilon", "1", "--delta", "1e-9"]
    for argv in (["schema", "check", "t.csv", "t.yaml"], ["plan", "t.yaml", *synth[6:]], synth):
        assert main(argv) == 0
        assert said in capsys.readouterr().err
    assert main(["report", "o.chicle", "-o", "p.html"]) == 0
    assert f"Safe to publish IF this holds: {said}" in Path("p.html").read_text(encoding="utf-8").replace("&#x27;", "'")
    Path("t.yaml").write_text(f"person: visit\n{declared}", encoding="utf-8")
    assert main([*synth, "--force"]) == 0
    assert said not in capsys.readouterr().err


def test_schemas_and_releases_are_given_as_they_are_at_hand(tmp_path: Path) -> None:
    Schema.from_dict(SCHEMA).save(tmp_path / "t.yaml")
    synth = chicle.Independent(epsilon=1, delta=1e-9)
    for schema in (tmp_path / "t.yaml", str(tmp_path / "t.yaml"), SCHEMA, SCHEMA["columns"], Schema.from_dict(SCHEMA)):
        assert len(synth.fit(frame(), schema).sample(10)) == 10
    synth.release_.save(tmp_path / "r.chicle")
    table = synth.sample(seed=0)
    found = [chicle.evaluate(frame(), table, release=one) for one in (synth.release_, tmp_path / "r.chicle")]
    assert found[0].to_json() == found[1].to_json()
    with pytest.raises(chicle.SchemaError, match="there is no type 'ordered'; did you mean 'ordinal'"):
        Schema({"a": {"type": "ordered", "values": ["low", "high"]}})
    assert Schema({"a": {"type": "integer", "min": 0, "max": 4, "bins": "private"}}).columns["a"].cardinality == 4


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1.0, 1e-9), (3.0, 1e-6), (9.0, 1e-5)])
def test_the_exception_is_how_often_the_odds_change_by_more(epsilon: float, delta: float) -> None:
    """The oracle draws from the pair of normals that Gaussian DP is about, by quadrature; delta itself is too small."""
    budget = Budget(epsilon=epsilon, delta=delta)
    mu = math.sqrt(2 * budget.rho)
    x = np.linspace(-12, 12 + mu, 2_000_001)
    density = np.exp(-((x - mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    loss = mu * x - mu**2 / 2
    found = float((density * (np.abs(loss) > epsilon)).sum() * (x[1] - x[0]))
    (said,) = re.findall(r"probability (\S+)$", in_words(budget))
    assert delta < found <= float(said) < 1.2 * found
    (basic,) = re.findall(r"probability (\S+)$", in_words(Budget(epsilon=epsilon, delta=delta, accounting="zcdp")))
    assert float(basic) >= delta
