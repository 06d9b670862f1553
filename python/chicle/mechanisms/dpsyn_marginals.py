"""What DPSyn measures: declared marginals, random views, or all pairs inside declared groups of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from chicle._checks import integer
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.models.layout import Layout
from chicle.selection.combine import given_cliques, given_weights

__all__ = ["Marginals", "group_of", "marginals_of", "random_views"]

_MOST_CELLS = 100_000  # of a random view: attributes of many values make it smaller
_SEED = 0xD18  # of random views: public, so that a plan and a fit have the same

Marginals = tuple[list[Clique], list[float] | None]
"""Cliques of fields, and the share of the budget of each if they have weights."""


def marginals_of(
    layout: Layout,
    *,
    marginals: Mapping[Clique, float] | Iterable[Iterable[str]] | None,
    views: tuple[int, int] | None,
    groups: Sequence[Sequence[str]],
) -> Marginals:
    """Return what is measured beside 1-ways, as cliques of the fields of a layout.

    Parameters
    ----------
    layout
        The fields.
    marginals
        Declared cliques of columns, with weights or not ([D18] 5.2).
    views
        How many random views, of how many attributes each ([D18] 4).
    groups
        Groups of columns that are synthesised apart ([D18] 5.4). Columns in none form one more group.
    """
    held = group_of(layout, groups)
    if marginals is None:
        inside: dict[int, list[str]] = {}
        for name in layout.domain:
            inside.setdefault(held[name], []).append(name)
        if views is not None:
            number, order = views
            return random_views(layout.domain, list(inside.values()), number, order), None
        return [pair for names in inside.values() for pair in combinations(names, 2)], None
    if views is not None:
        raise ParameterError("give marginals or views, not both")
    weighed, weights = given_weights(marginals, layout.columns)
    cliques: list[Clique] = []
    for clique in weighed:
        fields = layout.clique(clique)
        if len({held[name] for name in fields}) > 1:
            raise ParameterError(f"marginal {clique!r} has columns of two groups, which are synthesised apart")
        if fields in cliques:
            raise ParameterError(
                f"marginal {clique!r} says nothing beside another one: its columns are joint or mapped"
            )
        cliques.append(fields)
    return cliques, weights


def group_of(layout: Layout, groups: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the group of each field; a field in two of them is an error."""
    if isinstance(groups, str) or any(isinstance(group, str) for group in groups):
        raise ParameterError("groups must be a list of lists of columns")
    found: dict[str, int] = {}
    for number, group in enumerate(groups):
        for clique in given_cliques([group], layout.columns):
            for name in {layout.field_of(column) for column in clique}:
                if found.setdefault(name, number) != number:
                    raise ParameterError(f"groups: {name!r} is in two of them; groups must not overlap")
    rest = len(groups)
    return {name: found.get(name, rest) for name in layout.domain}


def random_views(domain: Domain, groups: Sequence[Sequence[str]], number: int, order: int) -> list[Clique]:
    """Return random cliques of a number of attributes, each inside one group, each once.

    PriView needs no covering design: random views do as well ([D18] 3.2). An attribute that would bring a view above
    100,000 cells is passed over. Every attribute is in some view, if a view can hold it: views begin with each in turn.

    Examples
    --------
    >>> random_views(Domain(dict.fromkeys("abcdef", 2)), ["abcdef"], 2, 4)
    [('a', 'b', 'c', 'f'), ('c', 'd', 'e', 'f')]
    """
    number, order = integer("the number of views", number, 1, 100_000), integer("the order of views", order, 2, 16)
    rng = np.random.default_rng(_SEED)
    names = [name for group in groups for name in group if len(group) > 1]
    inside = {name: list(group) for group in groups for name in group}
    found: dict[Clique, None] = {}
    for begin in range(4 * number):
        if len(found) == number or not names:
            break
        first = names[begin % len(names)]
        view, cells = [first], domain[first]
        for place in rng.permutation(len(inside[first])):
            name = inside[first][place]
            if name != first and len(view) < order and cells * domain[name] <= _MOST_CELLS:
                view.append(name)
                cells *= domain[name]
        if len(view) > 1:
            found[domain.clique(view)] = None
    return list(found)
