"""Every figure that the project promises about speed, campaigns and fleets, beside its goal, by one command.

`python benchmarks/goals.py [--only WORD ...] [--json FILE]` on an idle machine with two cores. Needs what
`benchmarks/run.py` needs, and `.[cluster]`. Ratios are of CPU times of one run, interleaved; times are wall
times unless it says CPU. It takes about half an hour; `--only peers` or another group takes a part of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
_DYNID = [sys.executable, "-m", "dynid"]
_STARTS = {"dualv": 12.0, "evra": 60.0, "stewart": 80.0}  # CPU seconds of eight starts


class Figure(NamedTuple):
    """A figure with its goal: at least, or at most."""

    what: str
    measured: float
    goal: float
    unit: str = ""
    least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the goal is reached."""
        return self.measured >= self.goal if self.least else self.measured <= self.goal

    @property
    def words(self) -> str:
        """In a line."""
        limit = "at least" if self.least else "at most"
        verdict = "holds" if self.holds else "MISSED"
        return f"{verdict:7s} {self.what:66s} {self.measured:10.4g} {limit} {self.goal:g} {self.unit}"


def records(*command: str) -> list[dict]:
    """JSON lines that a benchmark prints."""
    path = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=HERE.parent,
        env={**environment, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def timed(command: list[str], folder: str, **environment: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    begin, quiet = time.perf_counter(), subprocess.DEVNULL
    child = subprocess.Popen(command, cwd=folder, env={**kept, **environment}, stdout=quiet, stderr=quiet)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def peers() -> Iterator[Figure]:
    """Ratios to other tools, and the time of the whole job."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "peers.json"
        lines = records(str(HERE / "run.py"), "--no-curves", "--json", str(file))
        times = json.loads(file.read_text(encoding="utf-8"))["times_dynid"]
    (scipy,) = [ratio for name, ratio in times["identify"].items() if "scipy" in name and "fir" not in name]
    yield Figure("core, times Pinocchio with SciPy", scipy, 20.0, least=True)
    yield Figure("core, times figaroh", times["identify"]["figaroh"], 38.0, least=True)
    whole, other = (
        min(x["wall_seconds"] for x in lines if x["bench"] == "end_to_end" and x["tool"] == tool)
        for tool in ("dynid", "figaroh")
    )
    yield Figure("end to end, times figaroh that saves nothing", other / whole, 4.0, least=True)
    yield Figure("65 814 samples end to end", whole, 1.2, "s")


def start() -> Iterator[Figure]:
    """A long log, and commands as users first call them."""
    (long,) = records(str(HERE / "long_file.py"), "2000000")
    yield Figure("2 000 000 samples end to end", long["wall_s"], 6.0, "s")
    yield Figure("2 000 000 samples, memory", long["peak_mb"], 600.0, "MB")
    with tempfile.TemporaryDirectory() as place:
        fresh = timed([*_DYNID, "demo"], place, NUMBA_CACHE_DIR=f"{place}/cache")[0]
        yield Figure("first dynid demo, nothing compiled yet", fresh, 15.0, "s")
        for words, limit in (("info ur5", 0.6), ("--help", 0.1)):
            best = min(timed([*_DYNID, *words.split()], place)[0] for _ in range(5))
            yield Figure(f"dynid {words}", best, limit, "s")


def excitation() -> Iterator[Figure]:
    """Eight starts on closed robots."""
    for robot, limit in _STARTS.items():
        with tempfile.TemporaryDirectory() as place:
            _, cpu = timed([*_DYNID, "excite", robot, "--starts", "8", "--jobs", "1", "--out", "x"], place)
        yield Figure(f"excite {robot}, eight starts (CPU)", cpu, limit, "s")


def campaign() -> Iterator[Figure]:
    """A real Dask scheduler with two workers."""
    found = records("-m", "benchmarks.campaign_cluster")
    overheads = {name: x for line in found for name, x in line.get("overhead_percent", {}).items()}
    joined = {key: value for line in found for key, value in line.items()}
    for name in (f"{what}_{who}_killed" for what in ("runs", "tree") for who in ("worker", "scheduler")):
        different = joined["disturbed"][name]["different"]
        yield Figure(f"{name.replace('_', ' ')}: files that differ", len(different), 0)
    yield Figure("joined estimate and one pass, relative difference", joined["one_pass"]["of_value"], 1e-10)
    for name, overhead in overheads.items():
        yield Figure(f"overhead at tasks of one second, {name}", overhead, 20.0, "%")
    whole = joined["whole"]
    yield Figure("1000 logs of 20 robots: results", whole["results"], 997, least=True)
    yield Figure("1000 logs of 20 robots: set aside", len(whole["set_aside"]), 3)
    memory = whole["client_mb"]
    growth = memory["last_tenth"] - memory["first_tenth"]
    yield Figure("memory of the client, last tenth less first tenth", growth, 10.0, "MB")


def fleet() -> Iterator[Figure]:
    """Fifty robots over 24 months, looked at every month; other fleets each time."""
    options = ("--fleets", "40", "--seed", str(int(time.time())), "--every")
    found = records(str(HERE / "fleet_drift.py"), *options)
    sixth = found[0]["looks"].index(6)
    hold = sum(one["found"][sixth] == 5 and one["false_alarms"] <= 1 for one in found)
    yield Figure("all 5 drifts by month 6, at most 1 false alarm: fleets of 40", hold, 39, least=True)


GROUPS: tuple[Callable[[], Iterator[Figure]], ...] = (peers, start, excitation, campaign, fleet)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [group.__name__ for group in GROUPS]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--json", type=Path, help="write the figures")
    given = parser.parse_args()
    figures: list[Figure] = []
    for group in GROUPS:
        if group.__name__ not in given.only:
            continue
        for figure in group():
            print(figure.words, flush=True)
            figures.append(figure)
    if given.json is not None:
        rows = [{**figure._asdict(), "holds": figure.holds} for figure in figures]
        given.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
