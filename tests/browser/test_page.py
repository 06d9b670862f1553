"""The page in a real browser, driven by mouse and keyboard: from a file to a downloaded synthetic table.

`CHICLE_PICTURES=docs/ui pytest tests/browser` writes the pictures of the documentation.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import chicle

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
BROWSER = next((found for name in ("chromium", "google-chrome", "chrome") if (found := shutil.which(name))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="no chromium and chromedriver here (apt install chromium chromium-driver)"
)
PICTURES = os.environ.get("CHICLE_PICTURES")
WIDE, HIGH = 1180, 900


def people(rows: int = 20_000) -> pd.DataFrame:
    """A simulated register with labels."""
    census = chicle.datasets.census(rows, d=12)
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": census["AGE"],
            "sex": np.array(["female", "male"])[census["SEX"]],
            "employment": np.array(["retired", "employed", "unemployed", "other"])[census["EMPSTAT"]],
            "wage": census["INCWAGE"].astype(int) * 200 + rng.integers(0, 200, rows),
            "county": [f"C{code:02}" for code in census["COUNTY"]],
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the table; one with a plain name for the pictures, which show it."""
    made = tmp_path / "work" if PICTURES is None else Path(tempfile.gettempdir(), "register")
    made.mkdir()
    people().to_csv(made / "people.csv", index=False)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """The page, as a user starts it."""
    code = "import sys; from chicle.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(Path(chicle.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
    run = [sys.executable, "-c", code, "ui", "--no-browser"]
    process = subprocess.Popen(
        run, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    yield process.stdout.readline().split()[-1]
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in out + err


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    # No sandbox, since root has none; nothing is opened but our own page.
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        f"--window-size={WIDE},{HIGH}",
    ):
        options.add_argument(word)
    downloads = tmp_path / "downloads"
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": WIDE, "height": HIGH, "deviceScaleFactor": 1, "mobile": False},
        )
        yield driver
        said = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        assert not [message for message in said if "422" not in message], said
    finally:
        driver.quit()


def until(browser: Any, holds: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait until something holds, and return it."""
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := holds():
                return found
        except (NoSuchElementException, StaleElementReferenceException):
            pass
        time.sleep(0.05)
    return pytest.fail(f"at {browser.current_url.rpartition('/')[2]}: {browser.find_element('tag name', 'body').text}")


def at(browser: Any, step: str) -> None:
    until(browser, lambda: f"/{step}" in browser.current_url)


def find(browser: Any, css: str) -> Any:
    return until(browser, lambda: browser.find_element("css selector", css))


def picture(browser: Any, name: str, top: str | None = None) -> None:
    """Keep a picture of the page for the documentation, in few colours, if these are asked for."""
    if PICTURES is None:
        return
    from PIL import Image

    browser.execute_script("document.activeElement.blur()")
    if top is not None:
        browser.execute_script(f"document.querySelector('{top}').scrollIntoView()")
    time.sleep(0.4)
    place = Path(__file__).resolve().parents[2] / PICTURES / f"{name}.png"
    place.parent.mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(place))
    with Image.open(place) as taken:
        few = taken.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(place, optimize=True)


def confirm(browser: Any, index: int, source: str, **fields: str) -> None:
    """Fill in the form of a column, send it by the Enter key or the button, and wait for the next column."""
    at(browser, f"review/{index}")
    form = find(browser, "#declaration")
    for name, value in {**fields, "source": source}.items():
        box = form.find_element("name", name)
        box.clear()
        box.send_keys(value)
    form.find_element("name", "source").send_keys(webdriver.Keys.ENTER)


def test_from_a_file_to_a_downloaded_table(  # noqa: PLR0915 - one way
    browser: Any, address: str, folder: Path, tmp_path: Path
) -> None:
    keys = webdriver.Keys
    browser.get(address)
    at(browser, "open")
    picture(browser, "1-open")
    find(browser, "input[name=given]").send_keys("people.csv", keys.ENTER)
    at(browser, "review/0")
    # The arrow keys go through the columns.
    browser.find_element("tag name", "body").send_keys(keys.ARROW_DOWN)
    at(browser, "review/1")
    browser.find_element("tag name", "body").send_keys("k")
    at(browser, "review/0")
    confirm(browser, 0, "common knowledge", min="0", max="115")
    confirm(browser, 1, "questionnaire, item 2")
    picture(browser, "2-review")
    confirm(browser, 2, "questionnaire, item 5", values="employed\nunemployed\nretired\nother\nin training")
    confirm(browser, 3, "bands of the tax office", min="0", max="120000", bins="[0, 5000, 20000, 50000, 120000]")
    confirm(browser, 4, "list of counties")
    until(browser, lambda: "5 of 5" in browser.find_element("css selector", ".done").text)
    find(browser, "aside form button").send_keys(keys.ENTER)
    at(browser, "budget")
    slider = find(browser, "#epsilon")
    slider.send_keys(keys.ARROW_LEFT, keys.ARROW_LEFT)
    assert find(browser, "#shown").text == "0.5"
    shown = [one for one in browser.find_elements("css selector", ".buys") if one.is_displayed()]
    assert [one.get_attribute("data-epsilon") for one in shown] == ["0.5"]
    slider.send_keys(keys.ARROW_RIGHT, keys.ARROW_RIGHT)
    assert find(browser, "#shown").text == "1"
    records = find(browser, "input[name=records]")
    records.clear()
    records.send_keys("20000")
    find(browser, "button[value=budget]").click()
    until(browser, lambda: find(browser, "input[name=records]").get_attribute("value") == "20000")
    picture(browser, "3-budget")
    find(browser, "button[value=spend]").click()
    at(browser, "spend")
    assert "0 of 1" in find(browser, ".figures").text
    picture(browser, "4-spend")
    find(browser, "form.row button").click()
    at(browser, "results")
    until(browser, lambda: browser.find_element("css selector", "iframe"))
    picture(browser, "5-results")
    made = folder / "people-chicle" / "synthetic-1.csv"
    find(browser, "a.download").click()
    kept = tmp_path / "downloads" / "synthetic-1.csv"
    until(browser, kept.exists)
    assert kept.read_bytes() == made.read_bytes()
    assert list(pd.read_csv(kept)) == list(people(1))
    assert "chicle synth people.csv -s people-chicle/schema.yaml" in find(browser, "pre").text
    find(browser, "iframe")
    browser.switch_to.frame(browser.find_element("tag name", "iframe"))
    until(browser, lambda: "Safe to publish" in browser.find_element("tag name", "body").text)
    browser.switch_to.default_content()


def test_a_file_is_chosen_and_a_wrong_one_is_told(browser: Any, address: str, tmp_path: Path) -> None:
    """The picker and the drop send the same way; mistakes are told beside it; a second tab sees the same table."""
    browser.get(address)
    at(browser, "open")
    (tmp_path / "notes.doc").write_text("no table", encoding="utf-8")
    find(browser, "#file").send_keys(str(tmp_path / "notes.doc"))
    until(browser, lambda: "unknown ending" in browser.find_element("id", "sending").text)
    people(100).to_csv(tmp_path / "few people.csv", index=False)
    browser.refresh()
    find(browser, "#file").send_keys(str(tmp_path / "few people.csv"))
    at(browser, "review/0")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(address)
    at(browser, "review/0")
    assert "few people.csv" in find(browser, "header .table").text
    browser.close()
    browser.switch_to.window(first)
    assert find(browser, "h2").text.startswith("age")


def test_the_page_speaks_to_those_who_do_not_see_it(browser: Any, address: str) -> None:
    """Every field has a label, every picture a text, every page one main heading, and the first Tab skips the head."""
    browser.get(address)
    at(browser, "open")
    find(browser, "input[name=given]").send_keys("people.csv", webdriver.Keys.ENTER)
    at(browser, "review/0")
    for path in ("open", "review/0", "review/1", "job"):
        browser.get(f"{address}{path}")
        nameless = browser.execute_script(
            "return [...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
            ".filter(one => !one.labels.length && !one.ariaLabel).map(one => one.outerHTML)"
        )
        assert nameless == []
        silent = browser.execute_script(
            "return [...document.querySelectorAll('svg')]"
            ".filter(one => one.ariaHidden !== 'true' && !one.querySelector('title')).length"
        )
        assert silent == 0
        assert len(browser.find_elements("tag name", "h1")) == 1
        browser.find_element("tag name", "body").send_keys(webdriver.Keys.TAB)
        assert browser.switch_to.active_element.text == "Skip to the content"
