"""`chicle doctor`: what a bug report should say about the machine. Reads no table and sends nothing."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from chicle._core import __version__
from chicle._text import aligned
from chicle.cli.arguments import command
from chicle.cli.terminal import say

__all__ = ["add"]

_HELP = """\
Example:
  chicle doctor           # paste this into a bug report
  chicle doctor --json

Prints versions, threads, vector instructions, Java (for Spark) and memory. It names no file and no user.
"""
_PACKAGES = ("numpy", "pyarrow", "pandas", "polars", "scikit-learn", "matplotlib", "pyspark", "starlette", "uvicorn")
_SECONDS = 10  # for `java -version`, which can hang where Java is half installed


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "doctor", "print versions, threads, memory and more, for a bug report", _HELP)
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    facts = _facts()
    say(json.dumps(facts, indent=1) if arguments.json else "\n".join(aligned(list(facts.items()))))
    return 0


def _facts() -> dict[str, str]:
    return {
        "chicle": __version__,
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}, {_c_library()}",
        "threads": _threads(),
        "vector instructions": _vectors(),
        "memory": _memory(),
        "java": _java(),
        **{name: _version(name) for name in _PACKAGES},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _c_library() -> str:
    name, number = platform.libc_ver()
    return f"{name} {number}" if name else "its own C library"


def _threads() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    asked = os.environ.get("RAYON_NUM_THREADS")
    return f"{usable} of {os.cpu_count()} cores" + (f", RAYON_NUM_THREADS={asked}" if asked else "")


def _vectors() -> str:
    """Return which of the compiled forms of the kernels runs here, where the system tells."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "those of every processor of this kind"
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "AVX2 where the processor has it"
    return "AVX2" if re.search(r"\bavx2\b", flags) else "SSE2: this processor has no AVX2, which is slower"


def _memory() -> str:
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = (os.sysconf(name) * page / 2**30 for name in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return "not known on this system"
    return f"{total:.1f} GiB, {free:.1f} GiB of it unused"


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        return "not installed"
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return "does not answer"
    found = re.search(r'"([\w.+-]+)"', told.stderr)
    return found[1] if found else "does not tell its version"
