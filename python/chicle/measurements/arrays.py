"""Measurements as plain arrays, for the state of a model: cliques by position, tables end to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.domain import Domain
from chicle.errors import DomainError
from chicle.measurements.measurement import Measurement

__all__ = ["measurements_from_arrays", "measurements_to_arrays"]


def measurements_to_arrays(measurements: Sequence[Measurement], domain: Domain) -> dict[str, npt.NDArray[Any]]:
    """Return measurements as arrays.

    Examples
    --------
    >>> domain = Domain({"age": 3, "sex": 2})
    >>> measured = [Measurement(("sex",), np.array([4.0, 5.0]), 2.0)]
    >>> sorted(measurements_to_arrays(measured, domain))
    ['attributes', 'orders', 'seen', 'shapes', 'sigmas', 'values']
    """
    known: dict[bytes, int] = {}
    arrays: dict[str, npt.NDArray[Any]] = {}
    seen: list[int] = []
    for one in measurements:
        for name in one.clique:
            if name not in one.buckets:
                seen.append(-1)
                continue
            buckets = np.ascontiguousarray(one.buckets[name], dtype=np.uint32)
            place = known.setdefault(buckets.tobytes(), len(known))
            arrays[f"buckets-{place}"] = buckets
            seen.append(place)
    flat = [np.asarray(one.values, dtype=np.float64).reshape(-1) for one in measurements]
    return {
        "orders": np.array([len(one.clique) for one in measurements], dtype=np.int64),
        "attributes": np.array([domain.position(name) for one in measurements for name in one.clique], dtype=np.int64),
        "shapes": np.array([size for one in measurements for size in one.values.shape], dtype=np.int64),
        "seen": np.array(seen, dtype=np.int64),
        "sigmas": np.array([one.sigma for one in measurements], dtype=np.float64),
        "values": np.concatenate([np.empty(0), *flat]),
        **arrays,
    }


def measurements_from_arrays(arrays: Mapping[str, npt.NDArray[Any]], domain: Domain) -> list[Measurement]:
    """Return the measurements that `measurements_to_arrays` wrote; each must fit the domain."""
    names = list(domain)
    orders, sigmas, values = arrays["orders"], arrays["sigmas"], arrays["values"]
    shapes, seen, attributes = (arrays[key].tolist() for key in ("shapes", "seen", "attributes"))
    if (
        orders.shape != sigmas.shape
        or int(orders.sum()) != len(attributes)
        or not len(attributes) == len(shapes) == len(seen)
        or min([0, *attributes, *orders.tolist(), *shapes]) < 0
    ):
        raise DomainError("the arrays of measurements do not fit each other")
    made = []
    axis = cell = 0
    for order, sigma in zip(orders.tolist(), sigmas.tolist(), strict=True):
        places = range(axis, axis + order)
        clique = tuple(names[attributes[i]] for i in places)
        shape = tuple(shapes[i] for i in places)
        buckets = {name: arrays[f"buckets-{seen[i]}"] for name, i in zip(clique, places, strict=True) if seen[i] >= 0}
        cells = int(np.prod(shape, dtype=object))
        table = values[cell : cell + cells].reshape(shape)
        made.append(Measurement(clique, table, sigma, buckets=buckets).checked(domain))
        axis, cell = axis + order, cell + cells
    if cell != values.size:
        raise DomainError("the arrays of measurements have values left over")
    return made
