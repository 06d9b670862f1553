import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, so that a commit that passes here passes elsewhere; "explore" looks for new ones.
settings.register_profile("quick", max_examples=30, deadline=None, derandomize=True)
settings.register_profile("ci", max_examples=120, deadline=None, derandomize=True)
settings.register_profile("explore", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "quick"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real public tables, beside the checkout or where CHICLE_DATA says; absent in a user's clone."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CHICLE_DATA", beside))
    if not folder.is_dir():
        pytest.skip("no folder of real tables here (set CHICLE_DATA)")
    return folder
