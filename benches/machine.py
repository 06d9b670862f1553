"""The machine and the versions a record was made with; nothing that tells whose machine it is."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("chicle", "numpy", "polars", "duckdb", "pandas", "pyarrow", "opendp", "dp-accounting")


def describe() -> dict[str, str | int | float]:
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "caches": _caches(),
        "ram_gb": round(ram / 2**30, 1),
        "os": f"{platform.system()} {platform.machine()}",
    }


def seconds_of_others() -> float:
    """Return the CPU seconds, since the machine started, that went to anybody but this process and its children."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    user, nice, system, _idle, _wait, irq, soft_irq, steal = map(int, stat.read_text().split()[1:9])
    busy = (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")
    return busy - sum(os.times()[:4])


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), "rustc": _rustc()} | {name: _version(name) for name in PACKAGES}


def slug() -> str:
    """Return a short name for this kind of machine."""
    model = re.sub(r"\(r\)|\(tm\)|cpu|processor|@.*", "", _cpu_model().lower())
    return re.sub(r"[^a-z0-9]+", "-", f"{model} {os.cpu_count()} cores").strip("-")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


def _caches() -> str:
    caches = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    parts = [[(cache / name).read_text().strip() for name in ("level", "type", "size")] for cache in caches]
    return ", ".join(f"L{level} {kind.lower()} {size}" for level, kind, size in parts) or "unknown"


def _rustc() -> str:
    rustc = shutil.which("rustc")
    if rustc is None:
        return "not found"
    done = subprocess.run([rustc, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - on the path
    return done.stdout.split(" (")[0].removeprefix("rustc ").strip() or "not found"
