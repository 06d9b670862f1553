"""Install a wheel in clean environments without Rust and use it: `python .ci/smoke.py dist/*.whl [PYTHON ...]`.

Only the standard library is used. Each PYTHON is an interpreter; by default the one that runs this file.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

USE = """
import shutil, sys
from pathlib import Path
assert shutil.which("cargo") is None and shutil.which("rustc") is None, "Rust is on the path: this proves nothing"
import chicle
from chicle.cli import main
assert "site-packages" in chicle.__file__, chicle.__file__
census = chicle.datasets.census(2_000, d=5)
lines = [",".join(census.domain), *(",".join(map(str, row)) for row in zip(*(census[name] for name in census.domain)))]
Path("people.csv").write_text("\\n".join(lines), encoding="utf-8")
def run(*words):
    assert main(list(words)) == 0, words
run("schema", "draft", "people.csv", "-o", "people.yaml")
chicle.Schema.load("people.yaml").mark_reviewed(source="the simulator").save("people.yaml")
run("synth", "people.csv", "-s", "people.yaml", "-o", "made.csv", "--epsilon", "1", "--delta", "1e-9",
    "--release", "people.chicle", "--quiet")
run("sample", "people.chicle", "-o", "more.parquet", "-n", "100", "--quiet")
run("report", "people.chicle", "-o", "report.html", "--quiet")
run("doctor")
assert len(Path("more.parquet").read_bytes()) > 100
"""


def main() -> int:
    """Return 0 if the wheel works in every environment."""
    wheel = Path(sys.argv[1]).resolve()
    for python in sys.argv[2:] or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            if python == sys.executable:
                venv.create(place / "env", with_pip=True)
            else:
                subprocess.run([python, "-m", "venv", place / "env"], check=True)
            scripts = place / "env" / ("Scripts" if os.name == "nt" else "bin")
            clean = {
                name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CARGO", "RUST"))
            }
            clean["PATH"] = os.pathsep.join(_without_rust(clean.get("PATH", "")))
            for command in (["-m", "pip", "install", "--quiet", str(wheel)], ["-c", USE]):
                subprocess.run([scripts / "python", "-I", *command], cwd=place, env=clean, check=True)
            sys.stdout.write(f"{wheel.name} works in {python}\n")
    return 0


def _without_rust(path: str) -> list[str]:
    tools = ("cargo", "cargo.exe", "rustc", "rustc.exe")
    return [one for one in path.split(os.pathsep) if not any(Path(one, tool).exists() for tool in tools)]


if __name__ == "__main__":
    sys.exit(main())
