"""What the page did, as commands and as Python: the same way again, without the page."""

from __future__ import annotations

import shlex
from pathlib import Path

from chicle.ui.session import EPSILONS, Results

__all__ = ["as_commands", "as_python"]

_WARNING = "Running this again spends a new budget: the two add up. `sample` alone costs nothing."


def as_commands(table: str, schema: Path, results: Results, folder: Path) -> str:
    """Return commands of the shell, to be run in the folder of the page.

    Parameters
    ----------
    table, schema
        The private table and the reviewed schema.
    results
        The run.
    folder
        The folder of the page.
    """
    choice = results.choice
    paths = (results.release_path, results.table_path, results.report_path, results.dossier_folder)
    release, made, page, dossier = (_word(_within(path, folder)) for path in paths)
    budget = f"--epsilon {choice.epsilon:g} --delta {choice.delta:g} --mechanism {choice.mechanism}"
    several = ",".join(f"{epsilon:g}" for epsilon in EPSILONS)
    reviewed = _word(_within(schema, folder))
    # The same seed draws the same table, but not through `synth`: its noise is new each time.
    return f"""\
#!/bin/sh
# What the page did. {_WARNING}
set -e
chicle schema check {_word(table)} {reviewed}
chicle plan {reviewed} --epsilon {several} --delta {choice.delta:g} --mechanism {choice.mechanism} \\
  --records {choice.records}
# Spends epsilon {choice.epsilon:g}:
chicle synth {_word(table)} -s {reviewed} -o {made} {budget} \\
  --release {release}
# From the release that is there, the same table at no cost:
chicle sample {release} -o {made} --seed {results.seed} --force
chicle report {release} -o {page} --seed {results.seed % 2**31} --force
chicle dossier {release} -o {dossier} --force
"""


def as_python(table: str, schema: Path, results: Results, folder: Path) -> str:
    """Return Python code, to be run in the folder of the page; the parameters are those of `as_commands`."""
    choice = results.choice
    paths = (results.release_path, results.report_path, results.dossier_folder, schema)
    release, page, dossier, reviewed = (str(_within(path, folder)) for path in paths)
    budget = f"epsilon={choice.epsilon:g}, delta={choice.delta:g}"
    return f'''\
"""What the page did. {_WARNING}"""

import chicle
from chicle.dossier import write_dossier
from chicle.mechanisms.variants import named_mechanism

schema = chicle.Schema.load({reviewed!r})
synth = named_mechanism({choice.mechanism!r})({budget})
print(synth.sweep(schema, {list(EPSILONS)!r}, {choice.records}))
synth.fit({table!r}, schema)  # spends epsilon {choice.epsilon:g}
synth.release_.save({release!r})
print(synth.ledger_)
table = synth.release_.sample(seed={results.seed})
chicle.report({page!r}, synth.release_, seed={results.seed % 2**31})
write_dossier({release!r}, {dossier!r}, force=True)
'''


def _within(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _word(given: object) -> str:
    return shlex.quote(str(given))
