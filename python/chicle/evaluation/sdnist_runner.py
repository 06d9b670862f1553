"""Scores tables by SDNist's own code. Runs where SDNist is installed, and needs nothing of chicle.

Arguments: the folder that `chicle.evaluation.sdnist` wrote, and files of synthetic tables in it. Prints JSON: the
k-marginal score of each, the columns that SDNist left out, and its version.
"""

import csv
import importlib
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def _main(folder: Path, files: list[str]) -> dict[str, Any]:
    load = importlib.import_module("sdnist.load")
    dataset = importlib.import_module("sdnist.report.dataset").Dataset
    measure = importlib.import_module("sdnist.metrics.kmarginal").KMarginal
    log = importlib.import_module("sdnist.utils").SimpleLogger
    with (folder / files[0]).open(encoding="utf-8", newline="") as first:
        names = set(next(csv.reader(first)))
    scores, left_out = [], set[str]()
    for file in files:
        read = dataset(folder / file, log(), load.TestDatasetName.national2019, folder, download=False)
        groups = read.config["k_marginal"]["group_features"]
        scores.append(float(measure(read.d_target_data, read.d_synthetic_data, groups).compute_score()))
        left_out |= names - set(read.features)
    version = importlib.import_module("sdnist.version").__version__
    return {"scores": scores, "left_out": sorted(left_out), "version": str(version)}


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file: its names are chicle's
    try:
        with redirect_stdout(sys.stderr):
            made = _main(Path(sys.argv[1]), sys.argv[2:])
        sys.stdout.write(json.dumps(made))
    except Exception as error:  # noqa: BLE001 - anything may be raised, and its text may quote values of the table
        sys.stderr.write(f"\n{type(error).__name__}\n")
        sys.exit(1)
