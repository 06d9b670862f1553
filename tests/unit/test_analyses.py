"""Declared analyses: formulas, designs, estimates against plain solvers, answers that are kept and shown."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest

import chicle
from chicle import ArtefactError, Linear, Logit, ParameterError, Poisson, Schema, SchemaError
from chicle.analyses import Analysis, analysis_of
from chicle.analyses.formula import parse
from chicle.analyses.sums import Products, RowSumsTask
from chicle.measurements.persons import PersonRows
from chicle.privacy import TestNoise
from chicle.sources import open_source

SCHEMA = Schema(
    {
        "age": {"type": "integer", "min": 18, "max": 90, "missing": True},
        "sex": {"type": "categorical", "values": ["f", "m"]},
        "region": {"type": "categorical", "values": ["n", "s", "e", "w", "abroad"]},
        "los": {"type": "number", "min": 0, "max": 40, "bins": 16},
        "died": {"type": "boolean"},
        "visits": {"type": "integer", "min": 0, "max": 30, "outside": "clamp"},
        "day": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month"},
        "note": {"type": "drop"},
    }
)


def frame(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, male = rng.integers(18, 91, rows), rng.random(rows) < 0.5
    region = rng.choice(["n", "s", "e", "w"], rows, p=[0.4, 0.3, 0.2, 0.1])
    los = np.clip(5 + 0.1 * age + 3 * male + 2 * (region == "w") + rng.normal(0, 4, rows), 0, 40)
    died = rng.random(rows) < 1 / (1 + np.exp(3.5 - 0.04 * age - 0.5 * male))
    visits = np.minimum(rng.poisson(np.exp(0.3 + 0.015 * age)), 30)
    known = np.where(rng.random(rows) < 0.03, np.nan, age.astype(float))
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, rows), unit="D")
    return pd.DataFrame(
        {
            "age": known,
            "sex": np.where(male, "m", "f"),
            "region": region,
            "los": los,
            "died": died,
            "visits": visits,
            "day": days.date,
            "note": "x",
        }
    )


def plain(
    table: pd.DataFrame, kind: str, outcome: str, columns: list[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Coefficients and robust standard errors by Newton's method; nothing of it is the library's."""
    x = np.column_stack([np.ones(len(table)), *columns]).astype(float)
    y = table[outcome].to_numpy(dtype=float)
    scale = np.abs(x).max(axis=0)
    x /= scale
    b = np.zeros(x.shape[1])
    for _ in range(50):
        eta = x @ b
        mean, slope = {
            "linear": (eta, np.ones_like(eta)),
            "logit": (1 / (1 + np.exp(-eta)), 1 / (2 + np.exp(eta) + np.exp(-eta))),
            "poisson": (np.exp(eta), np.exp(eta)),
        }[kind]
        bread = np.linalg.inv(x.T @ (slope[:, None] * x))
        b = b + bread @ (x.T @ (y - mean))
    meat = x.T @ ((y - mean)[:, None] ** 2 * x)
    return b / scale, np.sqrt(np.diag(bread @ meat @ bread)) / scale


class TestFormula:
    @pytest.mark.parametrize(
        ("text", "terms"),
        [
            ("y ~ a", ["a"]),
            ("y ~ 1", []),
            ("y~a+b + a", ["a", "b"]),
            ("y ~ a*b", ["a", "b", "a:b"]),
            ("y ~ a + b + b:a", ["a", "b", "b:a"]),
            ("y ~ a * b * c", ["a", "b", "c", "a:b", "a:c", "b:c", "a:b:c"]),
            ("y ~ a + I(a ** 2) + I(a^3)", ["a", "a:a", "a:a:a"]),
            ('`y > 1` ~ `hours per week` + "x-y"', ["hours per week", "x-y"]),
            ("y == 1 ~ C(a, ref='x y') + b == -2.5", ["a", "b == -2.5"]),
        ],
    )
    def test_terms(self, text: str, terms: list[str]) -> None:
        assert [":".join(map(str, term)) for term in parse(text).terms] == terms

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("y", "lacks ~"),
            ("", "it ends where a column"),
            ("y ~", "it ends where a column"),
            ("y ~ a b", "'b' is out of place"),
            ("y ~ a - 1", "there always is an intercept"),
            ("y ~ 0 + a", "'0' stands where a column"),
            ("y ~ a + y", "both sides"),
            ("y ~ a:b", r"write `a \* b`"),
            ("y ~ I(a ** 2)", "needs a as a term too"),
            ("y ~ a + I(a ** 7)", "from 2 to 3"),
            ("y ~ C(a, levels=3)", "ref=VALUE"),
            ("y ~ C(a", r"lacks \)"),
            ("y ~ hours-per-week", "out of place"),
            ("y ~ a@b", "'@' has no meaning"),
            ("y ~ a == ~", "where a value"),
        ],
    )
    def test_errors_are_one_line_and_say_what_to_do(self, text: str, said: str) -> None:
        with pytest.raises(ParameterError, match=said) as found:
            parse(text)
        assert "\n" not in str(found.value)

    def test_text_of_a_command_line(self) -> None:
        assert analysis_of(" Logit : died ~ age") == Logit("died ~ age")
        for text in ("died ~ age", "probit: died ~ age"):
            with pytest.raises(ParameterError, match="begin with its kind"):
                analysis_of(text)


class TestDesign:
    @pytest.mark.parametrize(
        ("analysis", "said"),
        [
            (Linear("los ~ weight"), "'weight' is not in the schema"),
            (Linear("los ~ note"), "not modelled"),
            (Linear("los ~ day"), r"write C\(day\)"),
            (Linear("region ~ age"), "compare it with a value"),
            (Logit("region ~ age"), "not just two values"),
            (Linear("los ~ C(region, ref=x)"), "no value 'x'"),
            (Linear("los ~ sex + C(sex)"), "twice"),
            (Linear("los ~ C(age) * C(visits)"), "at most 250"),
            (Poisson("change ~ a"), "below 0"),
            (Linear("los ~ one"), "only one value"),
            (Linear("los ~ sex + I(sex ** 2)"), "no powers"),
            (Linear("los ~ C(found)"), "yet to be discovered"),
        ],
    )
    def test_what_has_no_public_design_is_an_error(self, analysis: Analysis, said: str) -> None:
        more: dict[str, Any] = {
            "change": {"type": "integer", "min": -5, "max": 5},
            "a": {"type": "boolean"},
            "one": {"type": "integer", "min": 3, "max": 3},
            "found": {"type": "open"},
        }
        schema = Schema({**SCHEMA.columns, **more})
        with pytest.raises((SchemaError, ParameterError), match=said):
            analysis.design(schema)

    def test_features_and_unscaled_coefficients_are_those_of_raw_columns(self) -> None:
        """Interactions, powers, factors: whatever coefficients, the linear predictor is the same."""
        design = Linear("los ~ age * region + I(age ** 2) + sex == m + age:sex == m").design(SCHEMA)
        table = frame(400).dropna()
        features, outcome = design.rows({name: pa.chunked_array([pa.array(table[name])]) for name in design.columns})
        age = table["age"].to_numpy()
        dummies = [(table["region"] == value).to_numpy(dtype=float) for value in ("s", "e", "w", "abroad")]
        male = (table["sex"] == "m").to_numpy(dtype=float)
        by_name = {
            "Intercept": np.ones(len(table)),
            "age": age,
            "age^2": age**2,
            "sex == m": male,
            "age:sex == m": age * male,
            **{f"region[{value}]": one for value, one in zip(("s", "e", "w", "abroad"), dummies, strict=True)},
            **{
                f"age:region[{value}]": age * one for value, one in zip(("s", "e", "w", "abroad"), dummies, strict=True)
            },
        }
        raw = np.column_stack([by_name[name] for name in design.names])
        coefficients = np.random.default_rng(0).normal(size=design.size)
        np.testing.assert_allclose(features @ coefficients, raw @ (design.unscale @ coefficients), atol=1e-8)
        np.testing.assert_allclose(outcome, (table["los"] - 20) / 20)

    def test_all_levels_of_a_factor_are_equally_far_from_each_other(self) -> None:
        design = Linear("los ~ region").design(SCHEMA)
        rows = {"los": pa.chunked_array([[1.0] * 5]), "region": pa.chunked_array([["n", "s", "e", "w", "abroad"]])}
        corners = design.rows(rows)[0][:, 1:]
        np.testing.assert_allclose(corners @ corners.T, 1.25 * np.eye(5) - 0.25, atol=1e-12)

    def test_raw_numbers_enter_not_bins(self) -> None:
        design = Linear("los ~ visits").design(SCHEMA)
        rows = {"los": pa.chunked_array([[3.25, 17.0]]), "visits": pa.chunked_array([[1, 99]])}
        features, outcome = design.rows(rows)
        np.testing.assert_allclose(features[:, 1], [(1 - 15) / 15, 1], err_msg="clamped to its bounds")
        np.testing.assert_allclose(outcome, [(3.25 - 20) / 20, (17 - 20) / 20])

    def test_incomplete_rows_are_left_out(self) -> None:
        design = Linear("los ~ age").design(SCHEMA)
        rows = {"los": pa.chunked_array([[3.0, 4.0, 5.0]]), "age": pa.chunked_array([[20, None, 30]])}
        assert len(design.rows(rows)[0]) == 2


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_sums_are_the_same_from_files_and_for_any_number_of_threads(tmp_path: Path, threads: int) -> None:
    table = frame(3_000)
    table.to_csv(tmp_path / "all.csv", index=False)
    table[:1_000].to_csv(tmp_path / "part-0.csv", index=False)
    table[1_000:].to_csv(tmp_path / "part-1.csv", index=False)
    design = Linear("los ~ age * sex + C(region)").design(SCHEMA)
    question = Products(of="x", design=design, weights=np.full(design.size, design.blocks**-0.5))
    alone = open_source(table, SCHEMA, threads=1).reduce(RowSumsTask([question]), design.columns).sums
    for given in (table, tmp_path / "all.csv", str(tmp_path / "part-*.csv"), [table[:7], table[7:]]):
        task = RowSumsTask([question])
        (sums,) = open_source(given, SCHEMA, threads=threads).reduce(task, task.columns).sums
        np.testing.assert_array_equal(sums, alone[0])


ASKED = [
    Logit("died ~ age + sex"),
    Linear("los ~ age + C(region) + sex"),
    Poisson("visits ~ age"),
    Linear("los ~ region"),
    Logit("died ~ sex"),
]


@pytest.fixture(scope="module")
def clear() -> tuple[pd.DataFrame, chicle.Release]:
    """A fit with so much budget that noise is no part of the answers."""
    table = frame(8_000)
    release = chicle.Prism(rho=2e5, allow_weak=True).fit(table, SCHEMA, analyses=ASKED, analysis_share=0.5).release_
    return table, release


def test_without_noise_answers_are_those_of_plain_solvers(clear: tuple[pd.DataFrame, chicle.Release]) -> None:
    table, release = clear
    whole = table.dropna()

    def dummies(some: pd.DataFrame) -> list[Any]:
        return [some["region"] == value for value in ("s", "e", "w")]

    wanted = [
        plain(whole, "logit", "died", [whole["age"], whole["sex"] == "m"]),
        plain(whole, "linear", "los", [whole["age"], *dummies(whole), whole["sex"] == "m"]),
        plain(whole, "poisson", "visits", [whole["age"]]),
        plain(table, "linear", "los", dummies(table)),
        plain(table, "logit", "died", [table["sex"] == "m"]),
    ]
    for answer, (estimate, error) in zip(release.analyses, wanted, strict=True):
        there = [i for i, name in enumerate(answer.names) if "abroad" not in name]
        off = (answer.estimate[there] - estimate) / error
        assert np.abs(off).max() < 0.15, answer.title
        np.testing.assert_allclose(answer.standard_error[there], error, rtol=0.12, err_msg=answer.title)
        assert np.abs(answer.interval(0.95)[there].mean(axis=1) - answer.estimate[there]).max() < 1e-9


def test_a_level_without_rows_is_not_determined_and_harms_no_other() -> None:
    """In a range of 40 days, its interval is tens of days wide."""
    table = frame(8_000)
    synth = chicle.Prism(epsilon=1, delta=1e-9)
    ledger = chicle.Ledger(synth.budget, noise=TestNoise(0))
    (answer,) = synth.fit(table, SCHEMA, analyses=[ASKED[1]], ledger=ledger).release_.analyses
    widths = dict(zip(answer.names, np.ptp(answer.interval(0.95), axis=1), strict=True))
    assert widths.pop("region[abroad]") > 30
    assert max(widths.values()) < 15


def test_group_differences_and_two_by_two_tables_are_analyses(clear: tuple[pd.DataFrame, chicle.Release]) -> None:
    table, release = clear
    means = table.groupby("region")["los"].mean()
    difference = release.analyses[3]
    assert difference.names[:2] == ("Intercept", "region[s]")
    for value in ("s", "e", "w"):
        i = difference.names.index(f"region[{value}]")
        assert abs(difference.estimate[i] - (means[value] - means["n"])) < 0.15 * difference.standard_error[i]
    odds = table.groupby("sex")["died"].mean().map(lambda p: p / (1 - p))
    ratio = release.analyses[4]
    assert abs(ratio.estimate[1] - np.log(odds["m"] / odds["f"])) < 0.15 * ratio.standard_error[1]


@pytest.mark.parametrize("k", [1, 4])
def test_errors_of_persons_with_k_rows_are_k_times_as_large_in_variance(k: int) -> None:
    """The bound of the cluster sandwich; the noise grows by k squared in variance, so little of it is here."""
    schema = Schema({name: SCHEMA.columns[name] for name in ("sex", "los")}, max_records_per_person=k)
    table = frame(4_000)[["sex", "los"]]
    answer = (
        chicle.Independent(rho=2_000.0, allow_weak=True)
        .fit(table, schema, analyses=[Linear("los ~ sex")])
        .release_.analyses[0]
    )
    _, error = plain(table, "linear", "los", [table["sex"] == "m"])
    np.testing.assert_allclose(np.sqrt(np.diag(answer.sampling)), k**0.5 * error, rtol=0.15)


def test_errors_of_persons_follow_from_their_released_numbers_of_rows() -> None:
    """Where the rows of a person are alike, errors are those of a clustered sandwich of the real table."""
    rng = np.random.default_rng(5)
    people = frame(4_000)[["sex", "los"]].assign(id=np.arange(4_000))
    sizes = rng.choice([1, 2, 6], 4_000, p=[0.6, 0.3, 0.1])
    table = people.loc[np.repeat(np.arange(4_000), sizes)]
    schema = Schema({name: SCHEMA.columns[name] for name in ("sex", "los")}, person="id", max_records_per_person=8)
    synth = chicle.Independent(rho=2_000.0, allow_weak=True).fit(table, schema, analyses=[Linear("los ~ sex")])
    x = np.column_stack([np.ones(4_000), people["sex"] == "m"]).astype(float)
    bread = np.linalg.inv((x * sizes[:, None]).T @ x)
    y = people["los"].to_numpy()
    scores = (x * sizes[:, None]) * (y - x @ (bread @ ((x * sizes[:, None]).T @ y)))[:, None]
    error = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))
    release = synth.release_
    assert release.alike == pytest.approx((sizes**2).sum() / sizes.sum(), rel=0.05)
    np.testing.assert_allclose(np.sqrt(np.diag(release.analyses[0].sampling)), error, rtol=0.15)


def test_few_persons_with_many_rows_that_noise_hides_count() -> None:
    values = np.append([10_000, 30, -20], np.zeros(5, dtype=np.int64)).astype(np.int64)
    clear, noisy = (PersonRows(values, sigma, 3, True) for sigma in (1.0, 500.0))
    assert clear.alike == pytest.approx((10_000 + 30 * 4 + 9) / 10_060)
    assert noisy.alike == pytest.approx((10_000 + 500 * 9) / 10_000)
    assert PersonRows(values, 1e9, 3, True).alike == 3


@pytest.mark.parametrize("rows", [0, 1, 30])
def test_tables_that_tell_nothing_give_wide_intervals(rows: int) -> None:
    table = frame(max(rows, 1))[:rows].assign(died=False)
    release = chicle.Prism(epsilon=1, delta=1e-9).fit(table, SCHEMA, analyses=ASKED).release_
    for answer in release.analyses:
        assert np.isfinite(answer.interval(0.95)).all()
        assert (answer.noise.diagonal() > 0).all()
    assert (release.analyses[0].standard_error > 0.05).all()


def test_answers_cover_when_noise_is_most_of_the_error() -> None:
    """A short form of `benches/coverage.py`: fifteen fits of a small table at epsilon 1."""
    population = frame(60_000, seed=1)
    wanted = [
        plain(population.dropna(), "logit", "died", [population.dropna()["age"], population.dropna()["sex"] == "m"])[0],
        plain(population, "linear", "los", [population["sex"] == "m"])[0],
    ]
    hits = []
    for seed in range(15):
        table = population.sample(4_000, replace=True, random_state=seed)
        synth = chicle.Prism(epsilon=1, delta=1e-9, threads=1)
        ledger = chicle.Ledger(synth.budget, noise=TestNoise(10_000 * seed))
        asked: list[Analysis] = [Logit("died ~ age + sex"), Linear("los ~ sex")]
        release = synth.fit(table, SCHEMA, analyses=asked, ledger=ledger).release_
        for answer, truth in zip(release.analyses, wanted, strict=True):
            low, high = answer.interval(0.95).T
            hits += ((low <= truth) & (truth <= high)).tolist()
    # 75 intervals of 95 %, some of which move together: fewer than 60 hits would be a bad omen for any seeds.
    assert sum(hits) >= 60


class TestAnswer:
    def test_it_is_kept(self, clear: tuple[pd.DataFrame, chicle.Release], tmp_path: Path) -> None:
        _, release = clear
        release.save(tmp_path / "a.chicle")
        again = chicle.load(tmp_path / "a.chicle")
        assert [one.to_dict() for one in again.analyses] == [one.to_dict() for one in release.analyses]
        kinds = [one.kind for one in again.transcript.row_sums]
        assert kinds == ["products"] * 3 + ["score"] * 2 * len(ASKED), "the first three share their products"
        for mine, theirs in zip(release.transcript.row_sums, again.transcript.row_sums, strict=True):
            np.testing.assert_array_equal(mine.estimates, theirs.estimates)

    @pytest.mark.parametrize("harm", ["title", "shape", "infinite", "unpaid"])
    def test_files_whose_answers_do_not_fit_are_refused(
        self, clear: tuple[pd.DataFrame, chicle.Release], tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _, release = clear

        def spoil(header: dict[str, Any]) -> None:
            one = header["analyses"][0]
            if harm == "title":
                one["title"] = "logit: died ~ los"
            elif harm == "shape":
                one["estimate"] = one["estimate"][:-1]
            elif harm == "infinite":
                one["noise"][0][0] = 1e999
            else:
                sums = [entry for entry in header["transcript"] if entry["kind"] == "row sums"]
                sums[0]["sigma"] /= 2

        path = tmp_path / "a.chicle"
        release.save(path)
        with zipfile.ZipFile(path) as file:
            members = {name: file.read(name) for name in file.namelist()}
        header = json.loads(members["release.json"])
        spoil(header)
        members["release.json"] = json.dumps(header).encode()
        monkeypatch.setattr("chicle.releases.artefact._checksum", lambda _: members["sha256"].decode())
        with zipfile.ZipFile(path, "w") as file:
            for name, data in members.items():
                file.writestr(name, data)
        with pytest.raises(ArtefactError):
            chicle.load(path)

    def test_it_is_a_table(self, clear: tuple[pd.DataFrame, chicle.Release]) -> None:
        _, release = clear
        answer = release.analyses[0]
        shown = answer.to_pandas()
        assert shown.index.tolist() == ["Intercept", "age", "sex[m]"]
        assert shown.columns.tolist() == ["estimate", "standard error", "low", "high", "p", "widening"]
        np.testing.assert_allclose(shown[["low", "high"]].to_numpy(), answer.interval(0.95))
        assert (shown["p"] < 0.001).all()
        assert (answer.interval(0.5)[:, 1] < answer.interval(0.99)[:, 1]).all()
        assert "logit: died ~ age + sex" in repr(answer)
        assert "<td>sex[m]</td>" in answer._repr_html_()
        assert repr(answer) in repr(release)
        for confidence in (0.0, 1.0, -1.0):
            with pytest.raises(ParameterError, match="confidence"):
                answer.interval(confidence)

    def test_it_is_in_the_report(self, clear: tuple[pd.DataFrame, chicle.Release], tmp_path: Path) -> None:
        _, release = clear
        text = chicle.report(tmp_path / "a.html", release).read_text(encoding="utf-8")
        assert 'id="answers"' in text
        assert "linear: los ~ age + C(region) + sex" in text
        assert "not private" not in text.lower().split("answers")[0]


def test_a_plan_tells_widths_before_data() -> None:
    """Within a factor of two or so where columns are spread evenly, as the plan assumes."""
    rng = np.random.default_rng(0)
    schema = Schema({"a": {"type": "integer", "min": 0, "max": 9}, "g": 4, "y": {"type": "boolean"}})
    table = {"a": rng.integers(0, 10, 20_000), "g": rng.integers(0, 4, 20_000), "y": rng.random(20_000) < 0.5}
    asked = [Logit("y ~ a + C(g)"), Linear("a ~ C(g)")]
    synth = chicle.Prism(epsilon=1, delta=1e-9)
    plan = synth.plan(schema, n=20_000, analyses=asked)
    assert sum(step.rho for step in plan.steps) == pytest.approx(plan.budget.rho)
    assert [one.title for one in plan.expected] == [one.title for one in asked]
    assert "expected answers" in str(plan)
    assert len(json.loads(plan.to_json())["analyses"]) == 2
    release = synth.fit(table, schema, analyses=asked).release_
    for expected, answer in zip(plan.expected, release.analyses, strict=True):
        ratio = answer.standard_error / np.array(expected.standard_error)
        assert (ratio > 0.6).all()
        assert (ratio < 1.8).all()
    assert "expected answers" not in str(synth.plan(schema))
