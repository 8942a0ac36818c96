"""Start-up times: `dynid --help`, the first demo on a new clone (nothing compiled yet) and
the second. CPU seconds of the child process, and wall seconds."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DYNID = [sys.executable, "-m", "dynid"]


def run(name: str, command: list[str], environment: dict[str, str], folder: str) -> None:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env=environment, cwd=folder, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"bench": "startup", "what": name, "cpu_s": round(cpu, 2), "wall_s": round(seconds, 2)}))


with tempfile.TemporaryDirectory() as folder:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
    run("dynid --help", [*DYNID, "--help"], environment, folder)
    run("dynid --help again", [*DYNID, "--help"], environment, folder)
    run("dynid robots", [*DYNID, "robots"], environment, folder)
    run("first demo serial6", [*DYNID, "demo", "serial6"], environment, folder)
    run("second demo serial6", [*DYNID, "demo", "serial6"], environment, folder)
    run("demo (dualv), closed loops", [*DYNID, "demo"], environment, folder)
    run("the same again", [*DYNID, "demo"], environment, folder)
    run("info puma560", [*DYNID, "info", "puma560"], environment, folder)
