"""GUM on the built-in census: cost per (record x marginal x pass) on one core, and the error it reaches.

``python benches/gum.py [records] [marginals] [passes]``; targets are exact, so the error is the method's own.
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np
from side_by_side import Row, Table, show

import chicle
from chicle import Measurement
from chicle.models.gum import Gum


def main(records: int = 662_000, marginals: int = 500, passes: int = 20) -> None:
    census = chicle.datasets.census(records, d=97)
    pairs = chicle.pairs(census.domain)
    cliques = [pairs[i] for i in np.random.default_rng(0).choice(len(pairs), marginals, replace=False)]
    start = process_time()
    counts = chicle.count(census, cliques, threads=1)
    counting = (process_time() - start) / (records * marginals) * 1e9
    targets = [Measurement(clique, values, 0.0) for clique, values in zip(cliques, counts, strict=True)]
    rows: list[Row] = []
    for variant in ("published", "tuned"):
        update = Gum(targets, census.domain, records, variant=variant, seed=0, threads=1)
        start = process_time()
        update.run(passes)
        cost = (process_time() - start) / (records * marginals * passes) * 1e9
        best = int(np.argmin(update.trace))
        rows.append(
            {
                "variant": variant,
                "ns per record, marginal, pass": cost,
                "times counting": cost / counting,
                "best error": update.trace[best],
                "at pass": best,
                "last error": update.trace[-1],
                "trace": " ".join(f"{error:.3f}" for error in update.trace[:: max(1, passes // 10)]),
            }
        )
    note = f"{records:,} x 97 records, {marginals} exact pairs, {passes} passes, one thread; counting {counting:.2f} ns"
    show(Table("GUM", rows, note))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
