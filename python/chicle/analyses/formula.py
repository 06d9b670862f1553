"""Formulas of declared analyses: ``outcome ~ term + term``, in a small part of the language of R.

A formula is read by this parser and by nothing else, because it is public and must stay so: the libraries that know
formulas evaluate code and take levels, ranges and centres from the data. Here all of them come from the schema
(`chicle.analyses.design`).

=====================  ===========================================================
``a``                  a number as it is; a dummy for each value of other columns
``C(a)``               a dummy for each value, or for each bin of a number
``C(a, ref=no)``       the same, with another reference than the first value
``a == yes``           1 for one value, 0 for all others; also as the outcome
``I(a ** 2)``          a power of a number, beside the number itself
``a:b``, ``a * b``     an interaction; with both main effects
=====================  ===========================================================

Names and values with other letters are quoted: `` `hours-per-week` ``, ``"Never worked"``. There always is an
intercept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NoReturn

from chicle.errors import ParameterError

__all__ = ["Atom", "Formula", "Term", "parse"]

_TOKEN = re.compile(
    r"""\s*(?:`(?P<quoted>[^`]+)`|"(?P<double>[^"]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]))|(?P<name>[^\W\d][\w.]*)|(?P<sign>==|\*\*|[~+*:(),=^-]))"""
)
_EXAMPLE = 'write for example "outcome ~ age + C(region)"'
_MOST_POWER = 3


@dataclass(frozen=True)
class Atom:
    """One column in a formula.

    Attributes
    ----------
    name
        The column.
    use
        ``"plain"``, ``"factor"`` for ``C(...)``, or ``"is"`` for a comparison with one value.
    value
        The reference of a factor, or the value of a comparison.
    """

    name: str
    use: str = "plain"
    value: Any = None

    def __str__(self) -> str:
        if self.use == "is":
            return f"{self.name} == {self.value}"
        return self.name


Term = tuple[Atom, ...]
"""The atoms whose product a term is, in their order in the formula; a power has the same atom several times."""


@dataclass(frozen=True)
class Formula:
    """A formula as it was written, and its parts.

    Attributes
    ----------
    text
        The formula.
    outcome
        What is explained.
    terms
        What explains it, without the intercept; main effects first.
    """

    text: str
    outcome: Atom
    terms: tuple[Term, ...]

    @property
    def atoms(self) -> list[Atom]:
        """Each atom of the right side once."""
        return list(dict.fromkeys(atom for term in self.terms for atom in term))

    @property
    def columns(self) -> list[str]:
        """Each column once, the outcome first."""
        return list(dict.fromkeys([self.outcome.name, *(atom.name for atom in self.atoms)]))


def parse(text: str) -> Formula:
    """Return the parts of a formula.

    Examples
    --------
    >>> found = parse("died ~ age * sex + C(region, ref='north')")
    >>> [":".join(map(str, term)) for term in found.terms]
    ['age', 'sex', 'region', 'age:sex']
    """
    if not isinstance(text, str):
        raise ParameterError(f"a formula is a text, not a {type(text).__name__}; {_EXAMPLE}")
    return _Parser(text).formula()


class _Parser:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._at = text, list[tuple[str, str]](), 0
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                rest = text[place:].lstrip()
                self._fail(f"{rest[:1]!r} has no meaning in a formula; quote other names as `{rest.split()[0]}`")
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            place = found.end()

    def formula(self) -> Formula:
        outcome = self._atom()
        self._sign("~", "between the outcome and what explains it")
        found: dict[frozenset[tuple[Atom, int]], Term] = {}
        while True:
            for term in self._terms():
                found.setdefault(_key(term), term)
            if not self._next("+"):
                break
        if self._at < len(self._tokens):
            said = self._tokens[self._at][1]
            self._fail(f"{said!r} is out of place; terms are joined by +, and there always is an intercept")
        terms = sorted(found.values(), key=len)
        for term in terms:
            if outcome.name in (atom.name for atom in term):
                self._fail(f"{outcome.name!r} is on both sides; leave it out on the right")
            for part in combinations(term, len(term) - 1):
                if part and _key(part) not in found:
                    whole, less = (" * ".join(map(str, atoms)) for atoms in (term, part))
                    self._fail(f"the interaction {whole} needs {less} as a term too; write `a * b` instead of `a:b`")
        return Formula(self._text.strip(), outcome, tuple(terms))

    def _terms(self) -> list[Term]:
        """Read a term; a product of several stands for all their interactions."""
        if self._tokens[self._at : self._at + 1] == [("number", "1")]:
            self._at += 1
            return []
        factors = [self._interaction()]
        while self._next("*"):
            factors.append(self._interaction())
        return [
            tuple(atom for part in some for atom in part)
            for size in range(1, len(factors) + 1)
            for some in combinations(factors, size)
        ]

    def _interaction(self) -> Term:
        atoms = list(self._power())
        while self._next(":"):
            atoms += self._power()
        return tuple(atoms)

    def _power(self) -> Term:
        if self._ahead("I"):
            self._at += 2
            atom = self._atom()
            times = 1
            if self._next("**") or self._next("^"):
                kind, said = self._token("a power")
                if kind != "number" or said not in map(str, range(2, _MOST_POWER + 1)):
                    self._fail(f"a power is a number from 2 to {_MOST_POWER}")
                times = int(said)
            self._sign(")", "after I(")
            return (atom,) * times
        return (self._atom(),)

    def _atom(self) -> Atom:
        if self._ahead("C"):
            self._at += 2
            name, reference = self._name(), None
            if self._next(","):
                if self._token("ref=")[1] != "ref":
                    self._fail("C(...) takes a column and ref=VALUE")
                self._sign("=", "after ref")
                reference = self._value()
            self._sign(")", "after C(")
            return Atom(name, "factor", reference)
        name = self._name()
        return Atom(name, "is", self._value()) if self._next("==") else Atom(name)

    def _ahead(self, function: str) -> bool:
        return self._tokens[self._at : self._at + 2] == [("name", function), ("sign", "(")]

    def _name(self) -> str:
        kind, said = self._token("a column")
        if kind not in ("name", "quoted", "double", "single"):
            self._fail(f"{said!r} stands where a column is expected; {_EXAMPLE}")
        return said

    def _value(self) -> Any:  # noqa: ANN401 - a text or a number
        kind, said = self._token("a value")
        if kind == "number":
            return int(said) if re.fullmatch(r"-?\d+", said) else float(said)
        if kind == "sign":
            self._fail(f"{said!r} stands where a value is expected")
        return said

    def _token(self, what: str) -> tuple[str, str]:
        if self._at == len(self._tokens):
            self._fail(f"it ends where {what} is expected; {_EXAMPLE}")
        self._at += 1
        return self._tokens[self._at - 1]

    def _next(self, sign: str) -> bool:
        there = self._tokens[self._at : self._at + 1] == [("sign", sign)]
        self._at += there
        return there

    def _sign(self, sign: str, where: str) -> None:
        if not self._next(sign):
            self._fail(f"it lacks {sign} {where}; {_EXAMPLE}")

    def _fail(self, rule: str) -> NoReturn:
        raise ParameterError(f"formula {self._text!r}: {rule}")


def _key(term: Term) -> frozenset[tuple[Atom, int]]:
    """Return what makes two terms the same: the atoms and how often each occurs, in any order."""
    return frozenset((atom, term.count(atom)) for atom in term)
