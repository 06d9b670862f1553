"""The dossier and `chicle verify`: complete, escaped, made of public things, and not fooled by changed files."""

import json
import math
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import chicle
from chicle import Budget, Ledger, Measurement, ParameterError, Release, Schema
from chicle.cli import main
from chicle.dossier import verify, write_dossier
from chicle.dossier.checks import check_release
from chicle.dossier.document import Block, Code, Document, Items, Section, Table
from chicle.dossier.kinds import KINDS, kind_of
from chicle.dossier.oracle import cost_of, delta_of, discovered_by, epsilon_by_dp_accounting
from chicle.privacy import DiscoveryEvent, ExponentialEvent, GaussianEvent, LaplaceEvent, TestNoise, accounting
from chicle.privacy.events import Event

ROOT = Path(__file__).resolve().parents[2]
CENSUS = chicle.datasets.census(2_000, d=4)


@pytest.fixture(scope="module")
def release() -> Release:
    return chicle.Prism(epsilon=1, delta=1e-9).fit(CENSUS).release_


@pytest.fixture
def file(release: Release, tmp_path: Path) -> Path:
    release.save(tmp_path / "census.chicle")
    return tmp_path / "census.chicle"


# --- The oracle -------------------------------------------------------------------------------------------------------

mpmath.mp.dps = 60


def exact_delta(epsilon: float, mu: float) -> Any:
    e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.182, 1.0, 7.0])
@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 1.0, 5.0, 30.0])
def test_decimal_arithmetic_gives_the_curve_of_gaussian_dp(epsilon: float, mu: float) -> None:
    exact = exact_delta(epsilon, mu)
    if exact > 1e-250:
        assert delta_of(epsilon, mu * mu / 2, "gdp") == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("rho", [1e-4, 0.015, 0.5, 4.0])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
def test_zcdp_deltas_are_those_of_the_library(epsilon: float, rho: float) -> None:
    expected = accounting.zcdp_delta(epsilon=epsilon, rho=rho)
    if 1e-300 < expected < 0.99:
        assert delta_of(epsilon, rho, "zcdp") == pytest.approx(expected, rel=1e-6)
        assert delta_of(epsilon, rho, "zcdp-basic") >= expected * (1 - 1e-9)


EVENTS: tuple[Event, ...] = (
    GaussianEvent(purpose="marginal", clique=("a",), l2_sensitivity=3, sigma=7.5, values=4),
    LaplaceEvent(purpose="values", l1_sensitivity=2, scale=9.0, values=4),
    ExponentialEvent(purpose="choice of a marginal", epsilon=0.3, values=9),
    ExponentialEvent(purpose="choice of a cell", epsilon=1e-6, values=9),
    DiscoveryEvent(purpose="discovery", clique=("b",), l2_sensitivity=2, sigma=5.0, threshold=40, values=9),
)


@pytest.mark.parametrize("how", ["gdp", "zcdp", "zcdp-basic"])
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_costs_are_those_of_the_ledger(event: Event, how: Any) -> None:
    assert cost_of(event, how) == pytest.approx(event.rho(how), rel=1e-9)
    assert discovered_by([event, event]) == pytest.approx(2 * event.delta, rel=1e-9)


@pytest.mark.parametrize("how", ["gdp", "zcdp"])
def test_dp_accounting_agrees_on_a_whole_budget(how: Any) -> None:
    budget = Budget(epsilon=2, delta=1e-6, accounting=how)
    sigma = math.sqrt(3 / (2 * budget.rho))
    event = GaussianEvent(purpose="marginal", clique=("a",), l2_sensitivity=1, sigma=sigma, values=4)
    found = epsilon_by_dp_accounting(1e-6, [event] * 3, how)
    assert found == pytest.approx(2, rel=1e-6)


# --- Verification -----------------------------------------------------------------------------------------------------


def test_a_release_holds(file: Path) -> None:
    checks = verify(file)
    assert all(check.holds for check in checks), checks
    assert len(checks) == 7


MAKES: dict[str, Any] = {
    "AIM as published": lambda: chicle.AIM(epsilon=2, delta=1e-6, published=True, rounds=4),
    "PrivSyn in zCDP": lambda: chicle.PrivSyn(epsilon=2, delta=1e-6, accounting="zcdp", form="published"),
    "PrivSyn by Theorem 2": lambda: chicle.PrivSyn(epsilon=2, delta=1e-6, accounting="zcdp-basic"),
    "mu": lambda: chicle.MST(mu=0.3),
    "rho": lambda: chicle.FEM(rho=0.1, rounds=3, samples=5),
}


@pytest.mark.parametrize("made", MAKES)
def test_every_accounting_holds(made: str) -> None:
    checks = check_release(MAKES[made]().fit(CENSUS).release_)
    assert all(check.holds for check in checks), checks


@pytest.mark.parametrize("way", ["independent", "pooled", "attribute"])
@pytest.mark.parametrize("pure", [0.0, 0.3])
def test_partitions_hold(way: Any, pure: float) -> None:
    partition = chicle.Partition(("MARST",), way=way, pure=pure)
    census = chicle.datasets.census(3_000, d=5)
    schema = Schema.from_cardinalities(census.domain)
    release = chicle.MWEM(epsilon=2, delta=1e-6, rounds=2).fit(census, schema, partition=partition).release_
    checks = check_release(release)
    assert all(check.holds for check in checks), checks
    assert any("partition" in check.what for check in checks) is (way == "independent")
    if way == "independent":
        last = next(
            i
            for i in reversed(range(len(release.transcript)))
            if isinstance(release.transcript.entries[i], Measurement)
        )
        release.transcript.entries[last] = replace(release.measurements[-1], sigma=0.5)
        assert failing(check_release(release)) == ["no partition costs more than was paid for all of them"]
    told = {kind_of(event).name for event in release.ledger.events}  # type: ignore[attr-defined]
    assert ("tables of counts with Laplace noise" in told) is bool(pure)


def test_discovery_persons_and_analyses_hold() -> None:
    rows = {
        "id": [i // 2 for i in range(400)],
        "job": ["nurse", "clerk"] * 200,
        "age": [i % 60 for i in range(400)],
        "pay": [i % 7 for i in range(400)],
        "hours": [i % 5 for i in range(400)],
    }
    schema = Schema(
        {
            "id": {"type": "identifier"},
            "job": {"type": "open", "most": 5},
            "age": {"type": "integer", "min": 0, "max": 99, "bins": {"private": 8}},
            "pay": {"type": "integer", "min": 0, "max": 9},
            "hours": {"type": "integer", "min": 0, "max": 9},
        },
        person="id",
        max_records_per_person=2,
    )
    asked = [chicle.Linear("pay ~ hours")]
    synth = chicle.Independent(epsilon=3, delta=1e-6).fit(rows, schema, analyses=asked)
    checks = check_release(synth.release_)
    assert all(check.holds for check in checks), checks
    assert any("discoveries" in check.what for check in checks)
    told = {kind_of(event).name for event in synth.ledger_.events}
    assert {KINDS[i].name for i in (0, 4, 5, 6, 7)} == told


def failing(checks: Any) -> list[str]:
    return [check.what for check in checks if not check.holds]


def test_what_was_not_paid_for_is_found(release: Release) -> None:
    for lost in range(len(release.ledger.entries)):
        ledger = Ledger.from_dict(release.ledger.to_dict())
        del ledger._paid[lost]
        assert failing(check_release(replace(release, ledger=ledger))) == ["every release was paid for"]


def test_a_budget_that_was_overspent_is_found(release: Release) -> None:
    ledger = Ledger.from_dict(release.ledger.to_dict())
    ledger._budget = Budget(epsilon=0.5, delta=1e-9)
    assert failing(check_release(replace(release, ledger=ledger))) == [
        "the promise is kept, in decimal arithmetic",
        "the promise is kept, by dp-accounting",
    ]
    ledger._budget = Budget(rho=0.001)
    assert "the promise is kept" in failing(check_release(replace(release, ledger=ledger)))


def test_costs_that_were_changed_are_found(release: Release) -> None:
    ledger = Ledger.from_dict(release.ledger.to_dict())
    ledger._paid = [(event, cost / 2) for event, cost in ledger._paid]
    assert failing(check_release(replace(release, ledger=ledger))) == ["the sum of all costs comes out the same"]


def test_a_sensitivity_below_k_is_found(release: Release) -> None:
    schema = Schema.from_cardinalities(release.schema.domain, max_records_per_person=3)
    assert failing(check_release(replace(release, schema=schema))) == ["sensitivities allow for all rows of a person"]


def test_test_noise_and_claims_are_found() -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9), noise=TestNoise(0))
    made = chicle.Independent(epsilon=1, delta=1e-9).fit(CENSUS, ledger=ledger).release_
    assert failing(check_release(made)) == ["noise protects"]
    claimed = Release.from_marginals(list(made_protected().measurements), Schema(CENSUS.domain), claim="(1, 0)-DP, me")
    assert failing(check_release(claimed)) == ["the accounting can be recomputed"]


def made_protected() -> Release:
    return chicle.Independent(epsilon=1, delta=1e-9).fit(CENSUS).release_


def test_a_damaged_file_is_found(file: Path) -> None:
    # In the middle of what a member holds: a byte between members may be a time that nobody reads.
    with zipfile.ZipFile(file) as archive:
        largest = max(archive.infolist(), key=lambda member: member.compress_size)
    data = bytearray(file.read_bytes())
    name, extra = (int.from_bytes(data[largest.header_offset + at :][:2], "little") for at in (26, 28))
    data[largest.header_offset + 30 + name + extra + largest.compress_size // 2] ^= 1
    file.write_bytes(data)
    assert failing(verify(file)) == ["the file is a whole release"]


# --- The dossier ------------------------------------------------------------------------------------------------------

TOPICS = (
    *("The promise", "The privacy parameter, in words and in odds", "The unit of privacy", "Bias"),
    *("Variants of differential privacy", "Other releases of the same people: the ledger"),
    *("Algorithms and correctness", "Utility and accuracy", "Trust model and threat model"),
    *("Mechanism implementation challenges", "Data security and access control", "Data collection exposure"),
    *("The schema, and the source of every bound", "How to verify", "Versions and hashes", "What was not done"),
)


def test_a_dossier_has_every_topic_in_both_forms(file: Path, release: Release, tmp_path: Path) -> None:
    pages = write_dossier(file, tmp_path / "dossier", table="A census")
    markdown, html = (page.read_text(encoding="utf-8") for page in pages[:2])
    for topic in TOPICS:
        assert re.search(rf"^#+ {re.escape(topic)}$", markdown, re.MULTILINE), topic
        assert f">{topic}</h" in html
    for event in release.ledger.entries:
        assert f"{event.rho:.4g}" in markdown
    assert "an attacker's odds about one person change by at most a factor of 2.7" in markdown
    assert "ASSUMPTION" in markdown
    assert "<script" not in html
    assert all(check.holds for check in verify(file, dossier=tmp_path / "dossier"))


def test_beliefs_are_bayes() -> None:
    from chicle.dossier.strength import meaning

    blocks = meaning(Budget(epsilon=math.log(3), delta=1e-9))
    assert isinstance(blocks[1], Table)
    assert blocks[1].rows[-1] == ["50.0 %", "75.0 %", "25.0 %"]
    assert isinstance(blocks[3], Table)
    powers = [float(row[1].split()[0]) for row in blocks[3].rows]
    assert all(low < high for low, high in pairwise(powers))


def test_every_kind_of_release_names_a_test_that_exists() -> None:
    for kind in KINDS:
        assert (ROOT / kind.test).exists(), kind
    assert {kind_of(event).name for event in EVENTS} == {KINDS[i].name for i in (0, 8, 2, 3, 4)}


def test_what_people_write_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | [x](y) `z`"
    schema = Schema({evil: {"type": "boolean", "source": evil}, "b": {"type": "boolean"}}, data={"name": evil})
    rows = {evil: [True, False] * 50, "b": [True] * 100}
    chicle.Independent(epsilon=1, delta=1e-9).fit(rows, schema).release_.save(tmp_path / "e.chicle")
    pages = write_dossier(tmp_path / "e.chicle", tmp_path / "d", table=evil)
    markdown, html = (page.read_text(encoding="utf-8") for page in pages[:2])
    assert "<script" not in html
    assert "<script" not in markdown
    assert "[x](y)" not in markdown
    lines = [line for line in markdown.splitlines() if "alert" in line and line.startswith("| ")]
    assert lines
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines if "boolean" in line}) == 1


def test_markdown_and_html_show_the_same() -> None:
    blocks: list[Block] = ["A text.", Items(("one", "two")), Table(["a", "b"], [["x", "1"]], 1), Code("run\nthis")]
    made = Document("Title", "Mind this", [Section("Head", blocks, [Section("Inner", ["More."])])])
    markdown, html = made.markdown(), made.html()
    assert markdown.startswith(
        "# Title\n\n**Mind this**\n\n## Head\n\nA text.\n\n- one\n- two\n\n| a | b |\n| --- | ---: |"
    )
    for word in ("Title", "Mind this", "Head", "A text.", "one", "two", "run\nthis", "Inner", "More."):
        assert word in html


def test_a_dossier_of_test_noise_says_so_first(tmp_path: Path) -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9), noise=TestNoise(0))
    chicle.Independent(epsilon=1, delta=1e-9).fit(CENSUS, ledger=ledger).release_.save(tmp_path / "t.chicle")
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        pages = write_dossier(tmp_path / "t.chicle", tmp_path / "d")
    assert pages[0].read_text(encoding="utf-8").splitlines()[2].startswith("**NOT PRIVATE")


def test_a_dossier_of_a_claim(release: Release, tmp_path: Path) -> None:
    claimed = Release.from_marginals(list(release.measurements), Schema(CENSUS.domain), claim="(1, 0)-DP, by a bureau")
    claimed.save(tmp_path / "c.chicle")
    pages = write_dossier(tmp_path / "c.chicle", tmp_path / "d")
    assert "by a bureau" in pages[0].read_text(encoding="utf-8")


def test_changed_dossiers_are_found(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "dossier"
    write_dossier(file, place)
    (place / "dossier.md").write_text("all is well", encoding="utf-8")
    assert failing(verify(file, dossier=place)) == ["the dossier is whole"]
    with pytest.raises(ParameterError, match="is not empty"):
        write_dossier(file, place)
    write_dossier(file, place, force=True)
    assert not failing(verify(file, dossier=place))
    other = tmp_path / "other.chicle"
    made_protected().save(other)
    assert failing(verify(other, dossier=place)) == ["the dossier is of this release"]
    (place / "manifest.json").write_text('{"files": {"../../x": "0"}, "release": {"sha256": "0"}}', encoding="utf-8")
    assert "the dossier is whole" in failing(verify(file, dossier=place))
    for broken in ("{", "[]", '{"files": 1}'):
        (place / "manifest.json").write_text(broken, encoding="utf-8")
        assert failing(verify(file, dossier=place)) == ["the dossier is whole"]


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, form = Ed25519PrivateKey.generate(), serialization
    private, public = tmp_path / "steward.pem", tmp_path / "public.pem"
    private.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def test_a_signed_manifest(file: Path, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    place = tmp_path / "dossier"
    written = write_dossier(file, place, key=private)
    assert {"manifest.json.sig", "public-key.pem"} <= {path.name for path in written}
    checks = verify(file, dossier=place, key=public)
    assert not failing(checks)
    assert "proves nothing about whose" in verify(file, dossier=place)[-1].detail
    manifest = place / "manifest.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("chicle dossier", "chicle Dossier"))
    assert failing(verify(file, dossier=place, key=public)) == ["the manifest is signed"]
    write_dossier(file, place, force=True, key=private)
    (tmp_path / "other").mkdir()
    for wrong in (private, file, tmp_path / "none.pem"):
        assert failing(verify(file, dossier=place, key=wrong)) == ["the manifest is signed"]


def test_a_key_without_a_signature(file: Path, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    write_dossier(file, tmp_path / "d")
    assert failing(verify(file, dossier=tmp_path / "d", key=keys[1])) == ["the manifest is signed"]


def test_keys_that_cannot_sign_are_refused_before_anything_is_written(
    file: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    for wrong in (keys[1], file, tmp_path / "none.pem"):
        with pytest.raises(ParameterError, match="openssl genpkey"):
            write_dossier(file, tmp_path / "d", key=wrong)
    assert not (tmp_path / "d").exists()


def test_the_commands(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "dossier")
    assert main(["dossier", str(file), "-o", place, "--table", "Census"]) == 0
    assert "dossier.html" in capsys.readouterr().out
    assert main(["dossier", str(file), "-o", place]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["verify", str(file), "--dossier", place]) == 0
    assert capsys.readouterr().out.count("ok  ") == 9
    assert main(["verify", str(file), "--json"]) == 0
    assert all(check["holds"] for check in json.loads(capsys.readouterr().out))
    assert main(["verify", str(file), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["verify", str(file), "--key", "x.pem"]) == 2
    assert "--dossier" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "none.chicle")]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_the_same_file_gives_the_same_dossier(file: Path, tmp_path: Path) -> None:
    """No date, no folder, no user: two dossiers of one release are equal bytes."""
    one, two = (write_dossier(file, tmp_path / name) for name in ("one", "two"))
    for first, second in zip(one, two, strict=True):
        assert first.read_bytes() == second.read_bytes()
        assert str(tmp_path) not in first.read_text(encoding="utf-8")


def test_dp_accounting_is_optional(file: Path) -> None:
    code = (
        "import sys; sys.modules['dp_accounting'] = None; from chicle.dossier import verify;"
        f"checks = verify({str(file)!r}); assert all(one.holds for one in checks); print(checks[-1].detail)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "not installed: skipped"
    assert np.__version__
