"""A claim is privacy stated by somebody else: it is shown and kept, but never pays and never passes for a ledger."""

import copy
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import ArtefactError, Budget, Desk, Ledger, Measurement, PrivacyError, Records, Release, Schema
from chicle.cli.entry import main
from chicle.privacy import Claim, ExponentialEvent, GaussianEvent, Guarantee, exponential, gaussian, laplace
from chicle.privacy.primitives import release_choice, release_frequent, release_gaussian
from tests.privacy.test_replay import DOMAIN, MECHANISMS, Make, table_of

CLAIM = "(1, 1e-6)-DP for one person, by the bureau"
SCHEMA = Schema({"sex": {"type": "categorical", "values": ["f", "m"]}, "smoker": {"type": "boolean"}})
TABLES = [Measurement(("sex", "smoker"), np.array([[412, 95], [377, 121]]), 5.0)]


@pytest.fixture
def claim() -> Claim:
    return Claim(f"  {CLAIM}\n")


@pytest.fixture
def release() -> Release:
    return Release.from_marginals(TABLES, SCHEMA, claim=CLAIM)


def test_it_says_whose_words_it_holds(claim: Claim) -> None:
    assert claim.text == CLAIM
    assert repr(claim) == claim.summary() == f"claimed by others, not verified by chicle: {CLAIM}"
    assert claim == Claim(CLAIM) != Claim("another")
    for wrong in ("", "  ", None, 3):
        with pytest.raises(PrivacyError, match="claim must say"):
            Claim(wrong)  # type: ignore[arg-type]


def test_it_is_no_ledger(claim: Claim) -> None:
    assert isinstance(claim, Guarantee)
    assert not isinstance(claim, Ledger)
    assert claim.budget is None
    assert claim.entries == ()
    missing = {"debit", "spent", "remaining", "epsilon", "events", "noise", "discovered"}
    assert missing <= set(dir(Ledger)), "what a ledger spends with has these names"
    assert not missing & set(dir(claim))
    with pytest.raises(AttributeError):
        claim.text = "more"  # type: ignore[misc]


CENSUS = chicle.datasets.census(100, d=2)
SPEND: dict[str, Any] = {
    "check": lambda claim: claim.check([GaussianEvent(purpose="", l2_sensitivity=1, sigma=5.0, values=1)]),
    "measure": lambda claim: Desk(CENSUS, claim).measure([()], sigma=5.0),
    "dependence": lambda claim: Desk(CENSUS, claim).dependence([("SEX", "AGE")], rho=0.1),
    "score": lambda claim: Desk(CENSUS, claim).score([("SEX",)], lambda _: [np.full(2, 50.0)], rho=0.1),
    "choose": lambda claim: Desk(CENSUS, claim).choose([("SEX",)], lambda _: [np.full(2, 50.0)], epsilon=0.1),
    "release_gaussian": lambda claim: release_gaussian(
        [np.array([5])], [GaussianEvent(purpose="", l2_sensitivity=1, sigma=5.0, values=1)], claim
    ),
    "release_choice": lambda claim: release_choice(
        np.array([5]), 1, ExponentialEvent(purpose="", epsilon=0.1, values=1), claim
    ),
    "gaussian": lambda claim: gaussian([5], l2_sensitivity=1, sigma=5.0, ledger=claim),
    "laplace": lambda claim: laplace([5], l1_sensitivity=1, scale=5.0, ledger=claim),
    "exponential": lambda claim: exponential([5, 6], sensitivity=1, epsilon=0.1, ledger=claim),
    "frequent": lambda claim: release_frequent(
        np.array([50]),
        chicle.privacy.DiscoveryEvent(purpose="", l2_sensitivity=1, sigma=2.0, threshold=20, values=9),
        claim,
    ),
}


@pytest.mark.parametrize("spend", SPEND)
def test_it_pays_for_nothing(spend: str, claim: Claim) -> None:
    with pytest.raises(PrivacyError, match=r"claim cannot pay|paid for by a chicle\.Ledger, not a Claim"):
        SPEND[spend](claim)


@pytest.mark.parametrize("make", MECHANISMS.values(), ids=MECHANISMS)
def test_no_fit_is_paid_by_it(make: Make, claim: Claim) -> None:
    table = Records(dict(zip(DOMAIN, table_of(0, 100, DOMAIN).T, strict=True)), DOMAIN)
    synth = make(epsilon=1, delta=1e-9)
    public = table if synth.public_data == "needed" else None
    with pytest.raises(PrivacyError, match=r"a fit is paid for by a chicle\.Ledger, not a Claim"):
        synth.fit(table, public=public, ledger=claim)  # type: ignore[arg-type]


def test_it_can_be_kept(claim: Claim, release: Release, tmp_path: Path) -> None:
    for again in (
        pickle.loads(pickle.dumps(claim)),  # noqa: S301 - our own
        copy.deepcopy(claim),
        Claim.from_dict(json.loads(claim.to_json())),
    ):
        assert type(again) is Claim
        assert again == claim
    release.save(tmp_path / "r.chicle")
    loaded = chicle.load(tmp_path / "r.chicle")
    assert loaded.ledger == release.ledger == claim
    assert pickle.loads(pickle.dumps(loaded)).ledger == claim  # noqa: S301
    with zipfile.ZipFile(tmp_path / "r.chicle") as file:
        header = json.loads(file.read("release.json"))
    assert header["claim"] == {"text": CLAIM}
    assert "ledger" not in header


@pytest.mark.parametrize("data", [None, CLAIM, [], {}, {"claim": CLAIM}, {"text": CLAIM, "budget": {"rho": 1}}])
def test_what_is_no_claim_is_refused(data: Any) -> None:
    with pytest.raises(ArtefactError, match="not a claim"):
        Claim.from_dict(data)
    with pytest.raises(ArtefactError, match="not a ledger"):
        Ledger.from_dict(Claim(CLAIM).to_dict())


def test_only_a_ledger_answers_for_tables(claim: Claim) -> None:
    """A ledger names every table that it did not pay for, and pays once for each event; a claim answers for all."""
    ledger = Ledger(Budget(rho=1))
    ledger.debit([GaussianEvent(purpose="marginal", clique=("a",), l2_sensitivity=2, sigma=5.0, values=3)])
    table = (("a",), 5.0, 3)
    assert ledger.unpaid([table], l2_sensitivity=2) == []
    assert ledger.unpaid([table, table], l2_sensitivity=2) == [("a",)]
    assert ledger.unpaid([table], l2_sensitivity=1) == [("a",)]
    assert ledger.unpaid([(("b",), 5.0, 3)], l2_sensitivity=2) == [("b",)]
    assert ledger.unpaid([(("a",), 4.0, 3)], l2_sensitivity=2) == [("a",)]
    assert claim.unpaid([table, table], l2_sensitivity=2) == []


def test_a_report_shows_it(release: Release, tmp_path: Path) -> None:
    page = chicle.report(tmp_path / "r.html", release).read_text(encoding="utf-8")
    for words in ("As safe as the marginals", "claimed by others", CLAIM, "Verified by chicle", "The claim is true."):
        assert words in page
    for words in ("Safe to publish", "NOT PRIVATE", "The ledger: every release", "budget spent", "random generator"):
        assert words not in page


def test_the_command_line_shows_it(release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release.save(tmp_path / "r.chicle")
    command = ["sample", str(tmp_path / "r.chicle"), "-n", "5", "-o"]
    assert main([*command, str(tmp_path / "a.csv")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"claimed by others, not verified by chicle: {CLAIM}"
    assert main([*command, str(tmp_path / "b.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["privacy"] == {"protected": True, "claim": CLAIM}


def test_test_noise_is_not_claimed_to_protect() -> None:
    unprotected = [Measurement(("sex", "smoker"), np.ones((2, 2)), 5.0, protected=False)]
    with pytest.raises(PrivacyError, match="test noise"):
        Release.from_marginals(unprotected, SCHEMA, claim=CLAIM)
