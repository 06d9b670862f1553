"""`chicle completion`: commands, options and choices for the shell to complete; it completes file names itself."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from chicle.cli.arguments import Parser, command
from chicle.cli.terminal import say

__all__ = ["add"]

_HELP = """\
Examples:
  eval "$(chicle completion bash)"                                      # in ~/.bashrc
  eval "$(chicle completion zsh)"                                       # in ~/.zshrc
  chicle completion fish > ~/.config/fish/completions/chicle.fish
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "completion", "print the completion of commands and options for your shell", _HELP)
    made.add_argument("shell", choices=sorted(_SHELLS), help="your shell")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from chicle.cli.entry import parser  # noqa: PLC0415 - the parser holds this command

    say(_SHELLS[arguments.shell](list(_places(parser()))))
    return 0


class _Place(NamedTuple):
    """What may follow some commands: further commands, options, and the choices of options that have some."""

    path: tuple[str, ...]
    commands: dict[str, str]
    options: dict[str, str]
    choices: dict[str, list[str]]


def _places(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[_Place]:
    """Yield every command of a parser, the outermost first."""
    commands: dict[str, str] = {}
    options: dict[str, str] = {}
    choices: dict[str, list[str]] = {}
    below: list[tuple[str, Parser]] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            commands = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001
            below = list(action.choices.items())
            continue
        longest = max(action.option_strings, key=len, default="")
        if longest:
            options[longest] = action.help or ""
        if action.choices is not None:
            choices[longest] = [str(choice) for choice in action.choices]
    yield _Place(path, commands, options, choices)
    for name, one in below:
        yield from _places(one, (*path, name))


def _bash(places: list[_Place]) -> str:
    lines = [
        "_chicle() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" path="" i',
        "  for ((i = 1; i < COMP_CWORD; i++)); do",
        '    case " $path ${COMP_WORDS[i]} " in',
        *(
            f"      {shlex.quote(f'  {place.path[0]} ')}) path={place.path[0]};;"
            for place in places
            if len(place.path) == 1
        ),
        *(
            f"      {shlex.quote(' ' + ' '.join(place.path) + ' ')}) path={shlex.quote(' '.join(place.path))};;"
            for place in places
            if len(place.path) > 1
        ),
        "    esac",
        "  done",
        '  case "$path $before" in',
    ]
    for place in places:
        for option, choices in place.choices.items():
            if option:
                lines.append(f"    {shlex.quote(' '.join([*place.path, option]))})")
                lines.append(f'      COMPREPLY=($(compgen -W {shlex.quote(" ".join(choices))} -- "$word")); return;;')
    lines += ["  esac", '  case "$path" in']
    for place in places:
        words = " ".join([*place.commands, *place.choices.get("", []), *place.options])
        lines.append(
            f'    {shlex.quote(" ".join(place.path))}) COMPREPLY=($(compgen -W {shlex.quote(words)} -- "$word"));;'
        )
    return "\n".join([*lines, "  esac", "}", "complete -o default -F _chicle chicle"])


def _zsh(places: list[_Place]) -> str:
    return f"autoload -U +X compinit bashcompinit\ncompinit\nbashcompinit\n{_bash(places)}"


def _fish(places: list[_Place]) -> str:
    lines = []
    for place in places:
        names = " ".join(place.commands)
        where = " && ".join(f"__fish_seen_subcommand_from {name}" for name in place.path)
        if place.commands:
            where = " && ".join([*([where] if where else []), f"not __fish_seen_subcommand_from {names}"])
        base = f"complete -c chicle -n {shlex.quote(where)}"
        lines += [f"{base} -f -a {name} -d {shlex.quote(what)}" for name, what in place.commands.items()]
        for option, what in place.options.items():
            kind = "-l" if option.startswith("--") else "-s"
            line = f"{base} {kind} {option.lstrip('-')} -d {shlex.quote(what)}"
            if option in place.choices:
                line += f" -x -a {shlex.quote(' '.join(place.choices[option]))}"
            lines.append(line)
        lines += [f"{base} -f -a {shlex.quote(' '.join(place.choices['']))}"] if "" in place.choices else []
    return "\n".join(lines)


_SHELLS: dict[str, Callable[[list[_Place]], str]] = {"bash": _bash, "fish": _fish, "zsh": _zsh}
