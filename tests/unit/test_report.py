"""The report is one page that fetches and runs nothing, whatever labels say, and says first whether it is private."""

import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import chicle
from chicle import Ledger, Records, Schema, demo
from chicle._html import cut, tag, text
from chicle.mechanisms.base import Mechanism
from chicle.privacy import TestNoise
from chicle.reports.headline import verdict

VOID = {"br", "meta"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "x" * 10_000,
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
    "مرحبا",
    "</style></svg></title><b>",
    "&amp;lt;",
    "null\x00 and\nnew line",
    "",
]


class Page(HTMLParser):
    """A page as a browser would read it: elements, their attributes, and the text that is seen."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.seen: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        if data.strip() and "body" in self.open:
            self.seen.append(data.strip())


def written(path: Path, **given: Any) -> Page:
    """Write a report and read it, once it is known to be whole, small and to fetch nothing."""
    page = chicle.report(path, **given).read_text(encoding="utf-8")
    assert len(page) < 5_000_000
    parsed = Page(page)
    names = {name for name, _ in parsed.elements}
    assert not names & {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "form",
        "a",
        "use",
        "image",
        "foreignObject",
    }
    for _, attributes in parsed.elements:
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "href", "style", "xlink:href")]
    policies = [a["content"] for name, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]
    assert "url(" not in page
    assert "@import" not in page
    return parsed


@pytest.fixture(scope="module")
def census() -> Records:
    return chicle.datasets.census(4_000, d=6)


@pytest.fixture(scope="module")
def release(census: Records) -> chicle.Release:
    return chicle.Prism(epsilon=1, delta=1e-6).fit(census).release_


def test_a_public_page(tmp_path: Path, release: chicle.Release) -> None:
    page = written(tmp_path / "a.html", release=release)
    assert page.seen[0].startswith("Safe to publish: ")
    said = " ".join(page.seen)
    assert "NOT PRIVATE" not in said
    for words in ("ε = 1", "at δ = 1e-06", "one person of at most 1 row", "What is certain", "Least certain pair"):
        assert words in said
    for name in release.schema.domain:
        assert name in page.seen
    assert "http" not in (tmp_path / "a.html").read_text(encoding="utf-8").replace("http-equiv", "")


def test_a_page_with_the_real_table(tmp_path: Path, release: chicle.Release, census: Records) -> None:
    table = release.sample(seed=1)
    page = written(
        tmp_path / "a.html", release=release, synthetic=table, real=census, title="Our census", remarks=["12 s"]
    )
    assert page.seen[0].startswith("NOT PRIVATE: ")
    said = " ".join(page.seen)
    found = chicle.evaluate(census, table, release=release)
    worst = found.errors[2].cliques[found.errors[2].worst(1)[0]]
    assert page.seen[page.seen.index("Worst pair") + 1 :][:3] == [worst[0], "×", worst[1]]
    for words in (
        *verdict(found)[1].split(": ")[1:],
        verdict(found)[0],
        "Our census",
        "12 s",
        "Reviewed by",
        "Independent",
    ):
        assert words in said
    assert all(score.title in page.seen for score in found.scores)
    again = written(tmp_path / "b.html", release=release, synthetic=table, evaluation=found, title="Our census")
    assert again.seen[0].startswith("NOT PRIVATE: ")


def test_the_same_seed_gives_the_same_page(tmp_path: Path, release: chicle.Release) -> None:
    pages = [chicle.report(tmp_path / f"{i}.html", release, seed=i // 2, threads=1 + i).read_text() for i in range(3)]
    assert pages[0] == pages[1] != pages[2]


@pytest.mark.parametrize(
    "make",
    [
        lambda: chicle.Independent(rho=0.1),
        lambda: chicle.PrivSyn(mu=0.5, options={"passes": 3}),
        lambda: chicle.Prism(epsilon=0.05, delta=1e-6),
        lambda: chicle.Prism(epsilon=5, delta=1e-6),
    ],
)
def test_every_mechanism_and_budget(make: Callable[[], Mechanism], tmp_path: Path, census: Records) -> None:
    synth = make().fit(census)
    written(tmp_path / "a.html", release=synth.release_)
    written(tmp_path / "b.html", release=synth.release_, real=census)


def test_test_noise_is_not_private(tmp_path: Path, census: Records) -> None:
    synth = chicle.Independent(epsilon=1, delta=1e-6)
    synth.fit(census, ledger=Ledger(synth.budget, noise=TestNoise(1)))
    page = written(tmp_path / "a.html", release=synth.release_)
    assert page.seen[0].startswith("NOT PRIVATE: the release was made with test noise")


def test_discovery_beside_a_budget_without_delta(tmp_path: Path) -> None:
    """The promise then holds except with a small probability, and the page says so."""
    jobs = pd.DataFrame({"job": ["cook", "smith"] * 400})
    schema = Schema({"job": {"type": "open"}})
    discovery = chicle.Discovery(delta=1e-8)
    for synth in (chicle.Independent(rho=0.5, discovery=discovery), chicle.Independent(mu=1.0, discovery=discovery)):
        synth.fit(jobs, schema)
        page = written(tmp_path / "r.html", release=synth.release_)
        said = " ".join(page.seen)
        assert "except with probability 1e-08" in said
        assert said.count("except with probability") == 3  # in the head, and where a reviewer signs, also in words


def test_what_was_measured_elsewhere(tmp_path: Path) -> None:
    schema = Schema({"sex": {"type": "categorical", "values": ["f", "m"]}, "smoker": {"type": "boolean"}})
    counts = {
        "sex": ["f", "f", "m", "m"],
        "smoker": [False, True] * 2,
        "value": [412, 95, 377, 121],
        "sigma": [5.0] * 4,
    }
    release = chicle.Release.from_marginals([counts], schema, claim="by <b>the bureau</b>")
    page = written(tmp_path / "a.html", release=release)
    assert page.seen[0].startswith("As safe as the marginals")
    assert "By <b>the bureau</b>." in page.seen
    written(tmp_path / "b.html", release=release, real=release.sample(seed=3))


def test_labels_are_text(tmp_path: Path) -> None:
    values = [label for label in HOSTILE if label]
    names = ["<script>alert(2)</script>", "a\"b'c<d>&e", "y" * 10_000, "\u202e\u05e9\u05dc\u05d5\u05dd", "plain"]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.choice(values, 500) for name in names})
    schema = Schema({name: {"type": "categorical", "values": values} for name in names})
    synth = chicle.Prism(epsilon=5, delta=1e-6).fit(frame, schema)
    for path, given in (("a.html", {}), ("b.html", {"real": frame})):
        page = written(tmp_path / path, release=synth.release_, title=HOSTILE[0], remarks=HOSTILE, **given)
        assert page.seen.count("<script>alert(1)</script>") > 3
        assert "<script>alert(2)</script>" in page.seen
        raw = (tmp_path / path).read_text(encoding="utf-8")
        assert "x" * 3_000 not in raw
        assert "\x00" not in raw
    _renders(tmp_path / "b.html")


def test_typed_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 100, n),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.random(n) * 1e5),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D"),
            "job": rng.choice([f"job {i}" for i in range(1_000)], n),
            "grade": rng.choice(["low", "middle", "high"], n),
            "well": rng.random(n) < 0.5,
        }
    )
    schema = Schema(
        {
            "age": {"type": "integer", "min": 0, "max": 99, "bins": 20},
            "income": {"type": "number", "min": 0, "max": 1e5, "bins": 50, "missing": True},
            "day": {"type": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": "week"},
            "job": {"type": "categorical", "values": [f"job {i}" for i in range(1_000)]},
            "grade": {"type": "ordinal", "values": ["low", "middle", "high"]},
            "well": {"type": "boolean"},
        }
    )
    synth = chicle.Prism(epsilon=5, delta=1e-6).fit(frame, schema)
    page = written(tmp_path / "a.html", release=synth.release_, synthetic=synth.sample(300, seed=0), real=frame)
    for label in ("0 to 4", "95 to 99", "missing", "low", "True", "989 others", "1,000 values", "51 values in order"):
        assert any(label in said for said in page.seen), label


@pytest.mark.parametrize("rows", [1, 30])
@pytest.mark.parametrize("domain", [{"a": 1}, {"a": 3}, {"a": 1, "b": 1}, {"a": 2, "b": 300}])
def test_small_tables(tmp_path: Path, rows: int, domain: dict[str, int]) -> None:
    real = Records({name: np.arange(rows) % size for name, size in domain.items()}, domain)
    synth = chicle.Prism(epsilon=1, delta=1e-6).fit(real)
    written(tmp_path / "a.html", release=synth.release_, synthetic=synth.sample(rows, seed=0))
    written(tmp_path / "b.html", release=synth.release_, synthetic=synth.sample(rows, seed=0), real=real)
    written(tmp_path / "c.html", synthetic=real, real=real)


def test_a_hundred_attributes_of_a_thousand_values(tmp_path: Path) -> None:
    domain = {f"attribute {i}": 1_000 for i in range(100)}
    rng = np.random.default_rng(0)
    real = Records({name: rng.integers(0, 1_000, 2_000) for name in domain}, domain)
    release = chicle.Independent(epsilon=1, delta=1e-6).fit(real, Schema(domain, ordinal=list(domain)[:50])).release_
    written(tmp_path / "a.html", release=release, synthetic=real)


def test_what_can_not_be_reported(tmp_path: Path, release: chicle.Release, census: Records) -> None:
    path = tmp_path / "a.html"
    with pytest.raises(chicle.ParameterError, match="needs a release, or the real table"):
        chicle.report(path, synthetic=census)
    with pytest.raises(chicle.ParameterError, match="leave schema= out"):
        chicle.report(path, release, schema=release.schema)
    with pytest.raises(chicle.ParameterError, match="give synthetic="):
        chicle.report(path, real=census)
    with pytest.raises(chicle.ParameterError, match="the synthetic table has no rows"):
        chicle.report(path, release, release.sample(0))
    with pytest.raises(chicle.ParameterError, match="the real table has no rows"):
        chicle.report(path, release, real=release.sample(0))
    missing = {name: census[name] for name in list(census)[1:]}
    with pytest.raises(chicle.ChicleError, match=r"the synthetic table: .*'SEX'"):
        chicle.report(path, release, missing)
    other = chicle.datasets.census(50, d=3)
    with pytest.raises(chicle.ParameterError, match="other attributes"):
        chicle.report(path, release, evaluation=chicle.evaluate(other, other))
    with pytest.raises(chicle.ArtefactError, match="cannot be written"):
        chicle.report(tmp_path / "none" / "a.html", release)
    assert not list(tmp_path.iterdir())


def test_the_demo_ends_with_two_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "PEOPLE", 2_000)
    demo.main(tmp_path / "there")
    said = capsys.readouterr().out
    for name, first in (("public", "Safe to publish"), ("private", "NOT PRIVATE")):
        path = tmp_path / "there" / f"{name}.html"
        assert str(path) in said
        assert Page(path.read_text(encoding="utf-8")).seen[0].startswith(first)


def test_pieces_are_escaped() -> None:
    assert tag("p", "<b>", title='"') == '<p title="&quot;">&lt;b&gt;</p>'
    assert tag("p", tag("b", "x")) == "<p><b>x</b></p>"
    assert text("a\x00\nb") == "a\N{REPLACEMENT CHARACTER} b"
    assert text("\ud800") == text("\u202e") == "\N{REPLACEMENT CHARACTER}"
    assert text("\u05e9\u05dc\u05d5\u05dd") == "\u05e9\u05dc\u05d5\u05dd"
    assert cut("abc", 3) == "abc"


def _renders(path: Path) -> None:
    """Open a page in a browser, where there is one: nothing is run, refused or complained of."""
    if CHROMIUM is None:
        return
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    profile = f"--user-data-dir={path.parent / 'profile'}"
    run = subprocess.run(
        [CHROMIUM, *options, profile, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert not re.findall(r".*(?:CONSOLE|Refused).*", run.stderr)
    assert "<main>" in run.stdout
    assert "<script" not in run.stdout


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_it_renders(tmp_path: Path, release: chicle.Release, census: Records) -> None:
    _renders(chicle.report(tmp_path / "a.html", release, real=census))


@pytest.mark.parametrize("both", [True, False])
def test_coarse_and_combined_columns(tmp_path: Path, both: bool) -> None:
    columns: dict[str, Any] = {
        "age": {"type": "integer", "min": 0, "max": 99, "coarse": 5},
        "left": {"type": "categorical", "values": ["a", "b"]},
        "right": 3,
        "z": 2,
    }
    kept = columns if both else {name: columns[name] for name in ("left", "right")}
    schema = Schema(kept, combine={"sides": ["left", "right"]})
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 100, 2_000),
            "left": rng.choice(["a", "b"], 2_000),
            "right": rng.integers(0, 3, 2_000),
            "z": rng.integers(0, 2, 2_000),
        }
    )[list(kept)]
    options = chicle.PrismOptions(contrasts=False)  # contrasts give no bounds on columns that are recoded
    release = chicle.Prism(epsilon=5, delta=1e-6, options=options).fit(frame, schema).release_
    page = written(tmp_path / "a.html", release=release)
    written(tmp_path / "b.html", release=release, real=frame)
    if both:
        assert "100 values in order" in page.seen
        bounds = {bound.clique: bound for bound in release.error_bounds(synthetic=release.sample(seed=0))}
        assert not bounds["age",].buckets
        assert bounds["age", "z"].buckets["age"].max() == 4
        assert bounds["left",].supported, "combined columns are told by their table"
        assert bounds["left", "right"].distance < 1
