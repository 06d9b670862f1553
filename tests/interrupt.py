"""Press Ctrl-C on a script that is busy."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path


def interrupt(folder: Path, prepare: str, work: str, last: str = "'stopped'") -> str:
    """Run `prepare`, then `work` for ever; interrupt it, and return what printing `last` gives."""
    script = folder / "busy.py"
    lines = [
        textwrap.dedent(prepare),
        "try:",
        "    print('busy', flush=True)",
        "    while True:",
        f"        {work}",
        "except KeyboardInterrupt:",
        f"    print({last}, flush=True)",
    ]
    script.write_text("\n".join(lines), encoding="utf-8")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "busy\n"
        try:
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    return rest
