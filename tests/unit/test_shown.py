"""What notebooks and interpreters show of a result: short, escaped, and with a warning where it is not private."""

import re
import subprocess
import sys
from typing import Any

import pandas as pd
import pytest

import chicle
from chicle import Budget, Ledger, ParameterError, Schema
from chicle._html import card
from chicle._progress import shown
from chicle.comparison import Comparison
from chicle.privacy import Claim, TestNoise

WIDE = Schema.from_cardinalities({f"column_{i}": 5 + i % 7 for i in range(100)})
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    census = chicle.datasets.census(2_000, d=5)
    synth = chicle.Prism(epsilon=1, delta=1e-9).fit(census)
    table = synth.sample(seed=0)
    row = {"mechanism": "Prism", "epsilon": 1.0, "delta": 1e-9, "seed": 0, "rows": 9, "seconds": 1.0, "peak_mb": 90.0}
    return {
        "schema": Schema({"sex": 2, SCRIPT: {"type": "boolean"}}, reviewed=False),
        "wide schema": WIDE,
        "plan": synth.plan(WIDE),
        "sweep": synth.sweep(WIDE, [0.2, 1]),
        "ledger": synth.ledger_,
        "release": synth.release_,
        "evaluation": chicle.evaluate(census, table, release=synth.release_),
        "comparison": Comparison(({**row, "error": "", "tvd_1": 0.1},), "of"),
        "claim": Claim(f"by the bureau {SCRIPT}"),
        "records": table,
    }


NOTEBOOKS = (
    "schema",
    "wide schema",
    "plan",
    "sweep",
    "ledger",
    "release",
    "evaluation",
    "comparison",
    "claim",
)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_show_a_small_table(results: dict[str, Any], name: str) -> None:
    html = results[name]._repr_html_()
    assert html.startswith("<div") and html.endswith("</div>")  # noqa: PT018
    assert "<script" not in html
    assert len(re.findall("<tr", html)) <= 60
    for element in ("div", "table", "tr", "td", "th"):
        assert len(re.findall(f"<{element}[ >]", html)) == html.count(f"</{element}>"), element


@pytest.mark.parametrize("name", ["schema", "evaluation", "comparison"])
def test_what_is_not_private_says_so_first(results: dict[str, Any], name: str) -> None:
    first = re.sub("<[^>]*>", " ", results[name]._repr_html_())[:40]
    assert "NOT PRIVATE" in first
    assert "NOT PRIVATE" in repr(results[name]).splitlines()[0]


def test_test_noise_is_told() -> None:
    assert "NOT PRIVATE" in Ledger(Budget(rho=1), noise=TestNoise(0))._repr_html_()
    assert "NOT PRIVATE" not in Ledger(Budget(rho=1))._repr_html_()


@pytest.mark.parametrize("name", ["wide schema", "plan", "sweep", "ledger", "release", "evaluation", "comparison"])
def test_short_in_an_interpreter(results: dict[str, Any], name: str) -> None:
    assert len(repr(results[name])) < 2_500
    if name in ("plan", "sweep", "evaluation", "comparison"):
        assert "\n" not in repr(results[name])
        assert len(str(results[name])) > len(repr(results[name]))


def test_print_leaves_nothing_out() -> None:
    assert all(name in str(WIDE) for name in WIDE.columns)
    assert "... 70 more columns" in repr(WIDE)


@pytest.mark.parametrize("name", ["schema", "plan", "sweep", "ledger", "evaluation", "comparison", "records"])
def test_tables_for_pandas(results: dict[str, Any], name: str) -> None:
    frame = results[name].to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert (
        len(frame)
        == {
            "schema": 2,
            "plan": len(results["plan"].steps),
            "sweep": sum(len(plan.steps) for plan in results["sweep"].plans),
            "ledger": len(results["ledger"].entries),
            "evaluation": len(results["evaluation"].scores),
            "comparison": 1,
            "records": len(results["records"]),
        }[name]
    )


def test_tables_of_errors_for_pandas(results: dict[str, Any]) -> None:
    found = results["evaluation"]
    pairs = found.errors[2].to_pandas()
    assert pairs["tvd"].tolist() == found.errors[2].tvd.tolist()
    assert list(pairs["clique"]) == list(found.errors[2].cliques)
    assert found.association.to_pandas()["cramers_v"].tolist() == found.association.cramers_v.tolist()
    assert results["ledger"].to_pandas()["rho"].sum() == pytest.approx(results["ledger"].spent)


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ParameterError, match="pip install pandas"):
        WIDE.to_pandas()


def test_a_long_table_loses_its_middle() -> None:
    html = card("many", [("of", "values"), *((f"row {i}", str(i)) for i in range(100))])
    assert "row 0<" in html
    assert "row 99<" in html
    assert "row 50<" not in html
    shown_rows = len(re.findall(r">row \d+<", html))
    assert f"… {100 - shown_rows} more" in html


def test_the_package_is_imported_in_parts() -> None:
    """`import chicle` loads neither numpy nor Arrow; the first use of a name loads what it needs."""
    code = (
        "import sys, chicle\n"
        "assert not {'numpy', 'pyarrow', 'chicle.schema', 'chicle.evaluation'} & set(sys.modules), 'eager'\n"
        "chicle.Schema\n"
        "assert 'chicle.schema' in sys.modules and 'chicle.comparison' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_release_alone_knows_the_bounds_of_its_mechanism(tmp_path: Any, results: dict[str, Any]) -> None:
    """A process that only loads a release has imported no mechanism, and claims as much as one that has."""
    results["release"].save(tmp_path / "r.chicle")
    code = (
        f"import chicle; release = chicle.load({str(tmp_path / 'r.chicle')!r})\n"
        "print(sum(bound.distance <= 1 for bound in release.error_bounds()))"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert int(told) == sum(bound.distance <= 1 for bound in results["release"].error_bounds())


class Place:
    """A place in a notebook, as IPython gives it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def update(self, shown: Any) -> None:
        self.seen.append(shown._repr_html_())


def test_progress_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place()
    monkeypatch.setattr("chicle._progress._notebook", lambda: place)
    census = chicle.datasets.census(2_000, d=4)
    chicle.AIM(epsilon=1, delta=1e-9, published=True, progress=True).fit(census).sample(seed=0)
    assert any("AIM: fit: pass 1, error" in seen for seen in place.seen)
    assert "AIM: sample: done" in place.seen[-1]
    assert all(seen.startswith("<div><progress") for seen in place.seen)


def test_progress_on_no_terminal_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    chicle.Prism(epsilon=1, delta=1e-9, progress=True).fit(chicle.datasets.census(500, d=4)).sample(seed=0)
    assert capsys.readouterr() == ("", "")


def test_progress_is_true_or_a_function() -> None:
    seen: list[int] = []
    synth = chicle.AIM(epsilon=1, delta=1e-9, published=True, progress=lambda number, _: seen.append(number))
    synth.fit(chicle.datasets.census(2_000, d=4))
    assert seen
    with shown(False, "fit") as listeners:
        assert listeners == (None, None)
    with pytest.raises(ParameterError, match="progress must be True, False or a function"):
        chicle.Prism(rho=1, progress="bar").fit(chicle.datasets.census(500, d=4))  # type: ignore[arg-type]
