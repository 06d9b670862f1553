"""Rules across linked tables: what no family, a parent with its children, may look like.

- ``{last: {encounters: {status: expired}}}``: a child with these values is the last of its parent;
- ``{some: {people: {age: {from: 18}}}}``: of the children of a parent, if it has any, at least one has these values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chicle.codes import Codes
from chicle.columns.base import Column, Mask
from chicle.columns.declare import unknown
from chicle.columns.selector import Selector
from chicle.errors import SchemaError

__all__ = ["FamilyRule", "family_rules"]

_FORM = "`last` or `some`, such as {some: {people: {age: {from: 18}}}}"


@dataclass(frozen=True, eq=False)
class FamilyRule:
    """One rule about the children of a parent.

    Attributes
    ----------
    kind
        ``"last"`` or ``"some"``.
    masks
        For each column of the rule, which of its codes have the values.
    declaration
        The declaration, as plain data.
    """

    kind: Literal["last", "some"]
    masks: Mapping[str, Mask]
    declaration: Mapping[str, Any]

    def meets(self, codes: Mapping[str, Codes]) -> Mask:
        """Return which children have the values of the rule."""
        held = [mask[codes[name]] for name, mask in self.masks.items()]
        return np.asarray(np.logical_and.reduce(held), dtype=np.bool_)

    def broken(self, codes: Mapping[str, Codes], family: npt.NDArray[np.int64], families: int) -> Mask:
        """Return which families break the rule.

        Parameters
        ----------
        codes
            The codes of children; those of a family stand together, in order.
        family
            The family of each child.
        families
            How many families there are.

        Examples
        --------
        >>> rule = FamilyRule("last", {"dead": np.array([False, True])}, {})
        >>> rule.broken({"dead": np.array([0, 1, 1, 0])}, np.array([0, 0, 1, 1]), 3)
        array([False,  True, False])
        """
        met = self.meets(codes)
        found = np.zeros(families, dtype=np.bool_)
        if self.kind == "last":
            followed = np.append(family[1:] == family[:-1], False) if len(family) else met
            found[family[met & followed]] = True
            return found
        found[family] = True
        found[family[met]] = False
        return found

    def __str__(self) -> str:
        columns = " and ".join(map(repr, self.masks))
        return f"the constraint `{self.kind}` on {columns}"


def family_rules(declared: Sequence[Any], child: str, columns: Mapping[str, Column]) -> tuple[FamilyRule, ...]:
    """Return the rules of a declaration.

    Parameters
    ----------
    declared
        The declaration: a list.
    child, columns
        The child table and its columns.
    """
    made = []
    for number, one in enumerate(declared, 1):
        try:
            made.append(_rule(one, child, columns))
        except SchemaError as error:  # noqa: PERF203 - a few turns
            raise SchemaError(f"constraint {number}: {error}") from None
    return tuple(made)


def _rule(one: object, child: str, columns: Mapping[str, Column]) -> FamilyRule:
    if not isinstance(one, Mapping) or len(one) != 1 or (kind := next(iter(one))) not in ("last", "some"):
        raise SchemaError(f"a rule across linked tables is {_FORM}; rules inside a table stand with the table")
    about = one[kind]
    if not isinstance(about, Mapping) or list(about) != [child]:
        raise SchemaError(f"{kind} must name the child table {child!r} and its columns, not {about!r}")
    values = about[child]
    if not isinstance(values, Mapping) or not values:
        raise SchemaError(
            f"{kind} must map columns of {child!r} to values, such as {{age: {{from: 18}}}}, not {values!r}"
        )
    masks = {}
    for name, named in values.items():
        if name not in columns or not columns[name].modelled:
            modelled = [known for known, column in columns.items() if column.modelled]
            raise SchemaError(f"{name!r} is not a modelled column of {child!r}; {unknown(str(name), modelled)}")
        try:
            masks[name] = Selector(columns[name])(named)
        except SchemaError as error:
            raise SchemaError(f"column {name!r}: {error}") from None
    if any(not mask.any() for mask in masks.values()) or (
        kind == "last" and all(mask.all() for mask in masks.values())
    ):
        raise SchemaError(f"{kind} names none of the values of {child!r}, or all of them; change its values")
    return FamilyRule(kind, masks, {kind: {child: dict(values)}})
