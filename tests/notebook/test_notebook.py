"""The example notebook runs as it stands, and what it shows is kept in the file.

`CHICLE_NOTEBOOK=write pytest tests/notebook` runs it and keeps what it shows.
"""

import os
import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "first-steps.ipynb"
WARNINGS = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.filterwarnings("ignore::UserWarning")]
pytestmark = WARNINGS


def kinds(cell: Any) -> list[str]:
    """What a cell shows, without what differs from run to run."""
    found = [set(output.get("data", {"stream": None})) for output in cell.outputs if output.output_type != "error"]
    return sorted("html" if "text/html" in kind else "image" if "image/png" in kind else "text" for kind in found)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The notebook as it is kept, and as it runs now."""
    kept = nbformat.read(NOTEBOOK, as_version=4)
    again = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    client = nbclient.NotebookClient(
        again, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    if os.environ.get("CHICLE_NOTEBOOK") == "write":
        for cell in again.cells:
            cell.metadata.pop("execution", None)
        again.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
        nbformat.write(again, NOTEBOOK)
        kept = again
    return kept, again


def test_it_runs_and_shows_what_is_kept(run: tuple[Any, Any]) -> None:
    kept, again = run
    pairs = [(old, new) for old, new in zip(kept.cells, again.cells, strict=True) if old.cell_type == "code"]
    assert len(pairs) >= 8
    for old, new in pairs:
        assert kinds(old) == kinds(new), old.source
    assert sum("html" in kinds(old) for old, _ in pairs) >= 5
    assert any("image" in kinds(old) for old, _ in pairs)


def test_it_is_small_and_names_no_machine(run: tuple[Any, Any]) -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert run
    assert len(text) < 200_000
    assert not re.search(r"/(home|root|work|tmp|Users)/", text)
    assert "Traceback" not in text
