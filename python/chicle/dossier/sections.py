"""The sections of a dossier, by the topics of NIST SP 800-226, from a release alone: nothing here is private."""

from __future__ import annotations

from collections import defaultdict

from chicle._text import percent
from chicle.dossier.checks import check_release
from chicle.dossier.document import Block, Code, Document, Items, Section, Table
from chicle.dossier.kinds import Kind, kind_of
from chicle.dossier.manifest import program
from chicle.dossier.strength import meaning
from chicle.privacy.describe import ledger_rows
from chicle.privacy.guarantee import Entry
from chicle.privacy.ledger import Ledger
from chicle.releases.bounds import ErrorBound
from chicle.releases.release import Release
from chicle.schema.sources import needs_source

__all__ = ["dossier_of"]

_MOST_PAIRS_OF = 40  # attributes; bounds on all pairs of more take long and nobody reads them
_MOST_PAIRS = 20
_CONFIDENCE = 0.95


def dossier_of(release: Release, name: str, digest: str, table: str = "") -> Document:
    """Return the dossier of a release.

    Parameters
    ----------
    release
        The release.
    name, digest
        Its file, without the folder, and the SHA-256 of it.
    table
        What the table is, in the steward's words.
    """
    warning = "" if release.ledger.protected else "NOT PRIVATE: this release was made with the noise of a test."
    sections = (
        _summary(release, name, digest, table),
        Section(
            "The differential privacy guarantee",
            sections=(_promise(release), _parameter(release), _unit(release), _variant(release), _mixing(release)),
        ),
        Section(
            "Differentially private algorithms",
            sections=(_algorithms(release), _inputs(release), _utility(release), _BIAS),
        ),
        Section(
            "Deploying differential privacy",
            sections=(_trust(release), _IMPLEMENTATION, _ACCESS, _collection(release)),
        ),
        _verification(release, name),
        _program(name, digest),
        _not_done(release),
    )
    return Document(f"Privacy dossier: {table or name}", warning, sections)


def _summary(release: Release, name: str, digest: str, table: str) -> Section:
    terms = release.ledger.terms(release.schema.max_records_per_person)
    rows = [["Table", table or "not said"], ["Release", f"{name}, SHA-256 {digest}"], ["Mechanism", release.mechanism]]
    rows += [[head, said] for head, said in terms.facts]
    rows += [[f"Data: {key}", str(value)] for key, value in release.schema.data.items()]
    rows += [["WEAK", weak] for weak in release.weakness]
    return Section("In short", [terms.detail + ".", Table(["what", ""], rows), *_list(release.notes)])


def _list(items: tuple[str, ...]) -> list[Block]:
    return [Items(items)] if items else []


def _promise(release: Release) -> Section:
    terms = release.ledger.terms(release.schema.max_records_per_person)
    return Section(
        "The promise",
        [
            (
                "Two tables are neighbours if one is the other with one person added or removed. Differential "
                "privacy bounds how much the distribution of everything that was released can differ between "
                "neighbours. So what anybody learns about a person from the release is nearly what they would "
                "learn had that person not been in the table. It does not hide what is true of people in "
                "general, even if it is also true of this person."
            ),
            f"Promised: {terms.promise}{terms.condition}.",
        ],
    )


def _parameter(release: Release) -> Section:
    budget = release.ledger.budget
    title = "The privacy parameter, in words and in odds"
    if budget is None:
        return Section(title, ["Claimed by others; see the summary. chicle cannot put it into odds."])
    return Section(title, meaning(budget))


def _unit(release: Release) -> Section:
    schema = release.schema
    k = schema.max_records_per_person
    if schema.person is not None:
        said = f"Persons are told by the column {schema.person!r}; at most {k} rows of each were used."
    else:
        said = f"No column tells persons. That nobody has more than {k} row{'s' if k > 1 else ''} is an ASSUMPTION."
    return Section(
        "The unit of privacy", [f"The unit is one person with all of his or her rows, at most k = {k}.", said]
    )


def _variant(release: Release) -> Section:
    terms = release.ledger.terms(release.schema.max_records_per_person)
    facts = [[head, said] for head, said in terms.facts if head in ("Promised", "Spent", "ρ", "μ", "Accounting")]
    how = (
        "Costs are added up in rho. Gaussian noise of deviation sigma on values of L2 sensitivity s costs s² / "
        "(2 sigma²); under Gaussian DP mu² = 2 rho, which is exact, also where later questions depend on earlier "
        "answers. Conversions to (epsilon, delta) are rounded against the steward."
    )
    return Section("Variants of differential privacy", [how, Table(["what", ""], facts)])


def _mixing(release: Release) -> Section:
    ledger = release.ledger
    title = "Other releases of the same people: the ledger"
    if not isinstance(ledger, Ledger):
        return Section(title, ["chicle did not make the tables and has no ledger of them."])
    own = len(release.transcript.entries) - (release.transcript.merge is not None)
    blocks: list[Block] = [
        (
            f"The ledger of this table has {len(ledger.events):,} events; the transcript of this release has "
            f"{own:,} entries. The guarantee is for everything in the ledger together. Releases of the same "
            "people that were paid from another ledger, or from none, add to it: budgets add up."
        ),
    ]
    if rows := ledger_rows(ledger):
        blocks.append(Table(rows[0], rows[1:], 2))
    return Section(title, blocks)


def _algorithms(release: Release) -> Section:
    ledger = release.ledger
    if not isinstance(ledger, Ledger):
        return Section("Algorithms and correctness", ["Unknown to chicle: the tables were made elsewhere."])
    groups: dict[Kind, list[Entry]] = defaultdict(list)
    for entry in ledger.entries:
        groups[kind_of(entry.event)].append(entry)
    rows = [
        [
            kind.name,
            f"{len(entries):,}",
            percent(sum(entry.share for entry in entries)),
            kind.sensitivity,
            kind.argument,
            kind.test,
        ]
        for kind, entries in groups.items()
    ]
    head = ["release", "how many", "share of the budget", "how far a person moves it", "argument", "test"]
    how = (
        "Every release is debited to the ledger before its noise is drawn. PRIVACY.md of the program has a row "
        "for each kind, with its proof; the named tests enumerate neighbours of tiny tables. `chicle audit` "
        "tries to refute the whole from outside; docs/audit.md has its figures. All else, the synthetic rows "
        "too, is computed from what was released, and costs nothing."
    )
    return Section("Algorithms and correctness", [how, Table(head, rows)])


def _inputs(release: Release) -> Section:
    rows = []
    for name, column in release.schema.columns.items():
        source = column.source or ("not said: its author's word" if needs_source(column) else "nothing of it can leak")
        declared = {key: value for key, value in column.to_dict().items() if key not in ("type", "source")}
        told = ", ".join(f"{key}: {value}" for key, value in declared.items())
        rows.append([name, column.type, told if len(told) < 200 else f"{told[:200]} ...", source])
    how = (
        "Names, values, bounds and bins are public or were discovered through the ledger; they are never read off the "
        "table. The last column says who knows them, in the steward's words."
    )
    head = ["column", "type", "declared", "source"]
    rules = tuple(str(rule) for rule in release.schema.constraints)
    more: list[Block] = ["Combinations that no row has, declared as public:", Items(rules)] if rules else []
    return Section("The schema, and the source of every bound", [how, Table(head, rows), *more])


def _utility(release: Release) -> Section:
    names = list(release.schema.domain)
    one_ways = release.error_bounds([(name,) for name in names], _CONFIDENCE)
    blocks: list[Block] = [
        (
            f"Each bound is computed from the release alone and holds by itself with {percent(_CONFIDENCE, 0)} "
            "probability over the noise. An error is the sum over all cells of |estimated - true| records."
        ),
        Table(["marginal", "error, at most", "share of the rows"], _bounds(one_ways, release.total), 1),
    ]
    if 1 < len(names) <= _MOST_PAIRS_OF:
        pairs = [one for one in release.error_bounds(confidence=_CONFIDENCE) if len(one.clique) == 2]
        known = sorted((one for one in pairs if one.supported), key=lambda one: -one.estimate_error)
        blocks += [
            f"Of {len(pairs):,} pairs, {len(known):,} are in a table that was measured; the worst of these:",
            Table(["pair", "error, at most", "share of the rows"], _bounds(known[:_MOST_PAIRS], release.total), 1),
        ]
    return Section("Utility and accuracy", blocks)


def _bounds(bounds: list[ErrorBound], total: int) -> list[list[str]]:
    return [
        [
            " x ".join(one.clique),
            f"{one.estimate_error:,.0f}" if one.supported else "not measured",
            percent(one.estimate_error / max(total, 1), 2) if one.supported else "-",
        ]
        for one in bounds
    ]


_BIAS = Section(
    "Bias",
    [
        Items(
            (
                (
                    "Statistical: noise has mean 0, but a synthetic table has no negative counts, and rare "
                    "values may be merged; so small groups are biased, and more than large ones. The bounds "
                    "above are on estimates; `chicle report` has those of a table."
                ),
                (
                    "Noise is the same for every cell, so its relative error is largest for the smallest groups. "
                    "Look at the groups that matter to you before you publish or act."
                ),
                "Systemic and human: privacy neither adds nor removes what was biased in collecting the data.",
                "Tables that were not measured follow a model. What the model assumes is not a finding.",
            )
        )
    ],
)


def _trust(release: Release) -> Section:
    terms = release.ledger.terms(release.schema.max_records_per_person)
    return Section(
        "Trust model and threat model",
        [
            (
                "Central model: whoever ran chicle saw the private table and is trusted. Everybody who sees the "
                "release, the synthetic tables or this dossier is not, may know all other rows, and may work "
                "together with others. It was released once; questions to it later cost nothing and reveal "
                "nothing more. What is taken for granted:"
            ),
            Items(terms.assumptions),
        ],
    )


_IMPLEMENTATION = Section(
    "Mechanism implementation challenges",
    [
        Items(
            (
                "Floating point: noise is drawn exactly, in integer arithmetic, and is added to integers.",
                "Randomness: ChaCha20, keyed by the operating system for each call. No seed reaches noise.",
                "Timing: the time of counting and of choices depends on the data. Nobody must observe it.",
                "Errors: a table that breaks its schema is refused; that it was is not protected.",
                "Side effects: counts, n and rows are in no log, file, message or saved object.",
            )
        )
    ],
)

_ACCESS = Section(
    "Data security and access control",
    [
        (
            "Not chicle's part. The private table, and drafts, flags and comparisons with it, which chicle marks "
            "NOT PRIVATE, must be kept from others. A release, its synthetic tables and this dossier may be "
            "published."
        )
    ],
)


def _collection(release: Release) -> Section:
    told = [f"{key}: {value}" for key, value in release.schema.data.items()]
    said: list[Block] = [Items(told)] if told else ["The schema says nothing about how the data were collected."]
    return Section(
        "Data collection exposure",
        ["Differential privacy protects what is released, not what was collected or who could see it.", *said],
    )


def _verification(release: Release, name: str) -> Section:
    rows = [["yes" if check.holds else "NO", check.what, check.detail] for check in check_release(release)]
    return Section(
        "How to verify",
        [
            "These checks were made when this dossier was written. Make them again, with the release and this folder:",
            Code(f"chicle verify {name} --dossier FOLDER --key STEWARD.pem"),
            Table(["holds", "checked", "figures"], rows),
            (
                "Without chicle: a release is a zip. release.json holds schema, ledger and transcript as text, "
                "and `.npy` files the tables. The rho of a ledger is the sum over its events of s² / (2 sigma²), "
                "and the epsilon of mu = sqrt(2 rho) at delta solves delta = Phi(mu/2 - epsilon/mu) - e^epsilon "
                "Phi(-mu/2 - epsilon/mu)."
            ),
        ],
    )


def _program(name: str, digest: str) -> Section:
    rows = [[head, said] for head, said in program().items()]
    return Section(
        "Versions and hashes",
        [
            f"SHA-256 of {name}: {digest}. The program that wrote this dossier (the release names its own version):",
            Table(["what", ""], rows),
        ],
    )


def _not_done(release: Release) -> Section:
    found = [
        "The program was not proved correct by a machine. Its arguments are on paper, and tested.",
        "Nobody can check from here whether sources of bounds are public, and whether the limit of rows holds.",
        "Releases of the same people outside this ledger were not looked for.",
        "An audit proves no privacy: it fails to find a breach.",
    ]
    if release.schema.person is None:
        found.append("No person column: rows of the same person were not limited.")
    unmeasured = [one for one in release.error_bounds([(name,) for name in release.schema.domain]) if not one.supported]
    if unmeasured:
        found.append(f"{len(unmeasured):,} columns have no table of their own; their errors are not bounded here.")
    return Section("What was not done", [Items(found)])
