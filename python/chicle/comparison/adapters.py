"""Other packages as contenders: ``smartnoise-mst@PYTHON`` names `smartnoise_mst`, run by that Python.

Each function needs numpy and its own package, and nothing of chicle: `chicle.comparison.foreign` runs this file where
the package is installed. The packages are told the domain and the exact number of records, which chicle's mechanisms
have to estimate. Where one draws from a generator, the seed sets it.
"""

import importlib
import itertools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["ADAPTERS", "PACKAGES"]

Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]
Domain: TypeAlias = Mapping[str, int]


def smartnoise_mst(columns: Columns, domain: Domain, *, epsilon: float, delta: float, seed: int) -> Columns:
    """MST of smartnoise-synth."""
    return _smartnoise("mst", columns, domain, epsilon=epsilon, delta=delta, seed=seed)


def smartnoise_aim(columns: Columns, domain: Domain, *, epsilon: float, delta: float, seed: int) -> Columns:
    """AIM of smartnoise-synth, at its own settings: all pairs, models of 80 MB."""
    return _smartnoise("aim", columns, domain, epsilon=epsilon, delta=delta, seed=seed)


def _smartnoise(
    name: str, columns: Columns, domain: Domain, *, epsilon: float, delta: float, seed: int
) -> dict[str, npt.NDArray[Any]]:
    pandas, snsynth = importlib.import_module("pandas"), importlib.import_module("snsynth")
    transform = importlib.import_module("snsynth.transform")
    np.random.seed(seed)  # noqa: NPY002 - the generator that it draws from
    # Its transformers read the values from the table; these read them from the domain.
    all_values = {column: np.arange(max(domain.values())) % size for column, size in domain.items()}
    labels = transform.TableTransformer([transform.LabelTransformer(nullable=False) for _ in domain])
    labels.fit(pandas.DataFrame(all_values))
    made = snsynth.Synthesizer.create(name, epsilon=epsilon, delta=delta)
    frame = pandas.DataFrame({column: columns[column].astype(np.int64) for column in domain})
    made.fit(frame, transformer=labels)
    drawn = pandas.DataFrame(made.sample(len(frame)))
    return {column: drawn.iloc[:, i].to_numpy(dtype=np.int64) for i, column in enumerate(domain)}


def dpmm_mst(columns: Columns, domain: Domain, *, epsilon: float, delta: float, seed: int) -> Columns:
    """MST of dpmm."""
    return _dpmm("mst", "MSTGM", columns, domain, epsilon=epsilon, delta=delta, seed=seed)


def dpmm_aim(columns: Columns, domain: Domain, *, epsilon: float, delta: float, seed: int) -> Columns:
    """AIM of dpmm."""
    return _dpmm("aim", "AIMGM", columns, domain, epsilon=epsilon, delta=delta, seed=seed)


def dpmm_privbayes(columns: Columns, domain: Domain, *, epsilon: float, delta: float, seed: int) -> Columns:
    """PrivBayes of dpmm."""
    return _dpmm("priv_bayes", "PrivBayesGM", columns, domain, epsilon=epsilon, delta=delta, seed=seed)


def _dpmm(
    module: str, name: str, columns: Columns, domain: Domain, *, epsilon: float, delta: float, seed: int
) -> dict[str, npt.NDArray[Any]]:
    pandas = importlib.import_module("pandas")
    made = getattr(importlib.import_module(f"dpmm.models.{module}"), name)(epsilon=epsilon, delta=delta)
    made.set_random_state(np.random.RandomState(seed))
    made.set_domain(dict(domain))
    frame = pandas.DataFrame({column: columns[column].astype(np.int64) for column in domain})
    made.fit(frame)
    drawn = made.generate(n_records=len(frame))
    return {column: drawn[column].to_numpy(dtype=np.int64) for column in domain}


def mbi_mst(columns: Columns, domain: Domain, *, epsilon: float, delta: float, seed: int) -> Columns:
    """MST by the models of mbi (private-pgm), which brings inference and no mechanism.

    A third of rho each buys the 1-ways, the choice of a spanning tree and its pairs; rare values are not merged.
    """
    importlib.import_module("jax").config.update("jax_enable_x64", True)
    mbi = importlib.import_module("mbi")
    rng = np.random.default_rng(seed)
    np.random.seed(seed)  # noqa: NPY002 - the generator that its records are drawn from
    rho, names, rows = _rho(epsilon, delta), list(domain), len(next(iter(columns.values())))
    known = mbi.Domain(names, [int(size) for size in domain.values()])

    def counts(clique: tuple[str, ...]) -> npt.NDArray[np.float64]:
        shape = tuple(domain[name] for name in clique)
        cells = np.ravel_multi_index(tuple(columns[name].astype(np.int64) for name in clique), shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).astype(np.float64)

    def measured(cliques: list[tuple[str, ...]]) -> list[Any]:
        sigma = float(np.sqrt(len(cliques) * 3 / (2 * rho)))  # k counts of sensitivity 1, each at rho/(3k)
        return [
            mbi.LinearMeasurement(counts(one) + rng.normal(0, sigma, counts(one).size), one, sigma) for one in cliques
        ]

    ones = measured([(name,) for name in names])
    if len(names) == 1:
        tree: list[tuple[str, ...]] = []
    else:
        model = mbi.estimation.MirrorDescent().estimate(known, ones, float(rows))
        score = {
            pair: float(np.abs(counts(pair) - np.asarray(model.project(pair).datavector())).sum())
            for pair in itertools.combinations(names, 2)
        }
        tree = _tree(names, score, np.sqrt(8 * rho / 3 / (len(names) - 1)), rng)
    model = mbi.estimation.MirrorDescent().estimate(known, [*ones, *(measured(tree) if tree else [])], float(rows))
    made: Columns = model.synthetic_data(rows).to_dict()
    return made


def _tree(
    names: list[str], score: Mapping[tuple[str, str], float], epsilon: float, rng: np.random.Generator
) -> list[tuple[str, ...]]:
    """Return the edges of a spanning tree, each by the exponential mechanism over scores of sensitivity 1."""
    part, tree = {name: name for name in names}, list[tuple[str, ...]]()
    while len(tree) < len(names) - 1:
        open_pairs = [pair for pair in score if part[pair[0]] != part[pair[1]]]
        gumbel = epsilon / 2 * np.array([score[pair] for pair in open_pairs]) + rng.gumbel(size=len(open_pairs))
        a, b = open_pairs[int(np.argmax(gumbel))]
        tree.append((a, b))
        part = {name: part[a] if mine == part[b] else mine for name, mine in part.items()}
    return tree


def _rho(epsilon: float, delta: float) -> float:
    """Return the rho of zCDP that gives (epsilon, delta), by the conversion of [A] proposition 4."""
    alpha = 1 + np.geomspace(1e-3, 1e6, 20_000)
    # delta = exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1), solved for rho; the best a gives the largest.
    log = np.log(delta) + np.log(alpha - 1) - alpha * np.log1p(-1 / alpha)
    return float(np.max((log / (alpha - 1) + epsilon) / alpha))


ADAPTERS: Mapping[str, Callable[..., Columns]] = {
    made.__name__.replace("_", "-"): made
    for made in (smartnoise_mst, smartnoise_aim, dpmm_mst, dpmm_aim, dpmm_privbayes, mbi_mst)
}
"""Each contender by its name."""

PACKAGES = {"smartnoise": "smartnoise-synth", "dpmm": "dpmm", "mbi": "mbi"}
"""What to install, by the first part of the name."""
