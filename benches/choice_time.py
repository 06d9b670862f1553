"""How far the time of a choice by the exponential mechanism tells of its scores, which PRIVACY.md assumes nobody sees.

    python benches/choice_time.py [CANDIDATES]

Mean CPU time of the kernel, the cases in turns.
"""

import sys
import time

import numpy as np

from chicle import _core

SCALE, TURNS = 1e6, 2_000


def main(candidates: int = 364) -> None:
    places = np.arange(candidates)
    cases = {
        "all scores equal": np.zeros(candidates),
        "spread over six scales": np.linspace(0, 6 * SCALE, candidates),
        "one far ahead": np.where(places == 0, 0, 1e9),
    }
    gaps = {name: values.astype(np.uint64) for name, values in cases.items()}
    spent = dict.fromkeys(gaps, 0)
    for _ in range(TURNS):
        for name, each in gaps.items():
            begun = time.process_time_ns()
            _core.choose(each, SCALE, None)
            spent[name] += time.process_time_ns() - begun
    for name, nanoseconds in spent.items():
        print(f"{name:24} {nanoseconds / TURNS / 1000:6.1f} us")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
