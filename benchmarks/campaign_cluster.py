"""Campaigns on a real Dask scheduler with two workers: what a kill changes, what the engine costs.

`python -m benchmarks.campaign_cluster [--robots 20] [--dates 50]` simulates and identifies that many logs of
a two-joint arm; friction of two robots grows, three logs are broken. Printed, one line each:

1. a worker killed in the middle, and a scheduler killed and started again, while logs are identified and
   while factors are merged: files that differ from those of local processes;
2. all logs of one robot: joined estimate against one pass, in relation to the value or its sigma;
3. runs, set aside, changes that were found, and memory of the client in the first tenth and at the end;
4. tasks of a second: wall time beyond the sum of the tasks divided by the workers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import distributed
import numpy as np
import yaml
from benchmarks.fleet_load import simulated_run
from tests.workspace import ARM, TRUTH

from dynid import identify, load_robot
from dynid.common.engine import completed
from dynid.report.json_file import read_result
from dynid.robots.truth import Truth
from dynid.simulation.files import write_log
from dynid.simulation.motion import MotionChoice
from dynid.simulation.sensors import Sensing
from dynid.simulation.simulation import Simulation, simulate

_SETTINGS = "{auto: 'off', filter: {cutoff: 20, decimate: 4}, mask: {speed: 0.05, rest: 0.01}}"
_FILE = "joined: true\nsettings: {}\nruns: [{{robot: arm.yaml, logs: '{}/{{unit}}/{{date}}.csv'}}]\n"
_BROKEN = 3
_GROWTH, _SCATTER, _BETWEEN = 0.03, 0.01, 0.1
_FEW = (4, 5)  # robots and dates of the runs that are disturbed
# Trees of pairs: five logs of a robot have three levels.
_CLIENT = "from dynid.campaign import tree; tree._WIDTH = {}; from dynid.cli import main; main()"


def write_logs(folder: Path, robots: int, dates: int, drifting: int, broken: int, seed: int = 0) -> None:
    """Logs `uNN/DATE.csv`: friction differs between robots and logs; Fv_joint_2 grows in the first robots."""
    (folder.parent / "arm.yaml").write_text(ARM, encoding="utf-8")
    robot = load_robot(folder.parent / "arm.yaml")
    usual = yaml.safe_load(TRUTH)
    friction = [name for name in usual if name.startswith("F")]
    rng = np.random.default_rng(seed)
    for unit in range(robots):
        own = {name: usual[name] * (1.0 + _BETWEEN * rng.standard_normal()) for name in friction}
        for date in range(dates):
            now = {name: value * (1.0 + _SCATTER * rng.standard_normal()) for name, value in own.items()}
            now["Fv_joint_2"] *= 1.0 + _GROWTH * date * (unit < drifting)
            settings = Simulation(
                rate=200.0,
                duration=4.0,
                seed=1000 * unit + date,
                motion=MotionChoice(kind="fourier", harmonics=4, frequency=0.25, draws=2, seed=2),
                truth=Truth(values={**usual, **now}),
                sensing=Sensing(resolution=1e-5, effort_sigma=0.05),
            )
            target = folder / f"u{unit:03}" / f"{2024 + date // 12}-{date % 12 + 1:02}.csv"
            target.parent.mkdir(parents=True, exist_ok=True)
            write_log(simulate(robot, settings).log(), target)
            if unit * dates + date in range(7, 7 + broken * dates, dates):
                target.write_text("t,q_1\n0,broken\n")


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.count = folder, workers
        self.address = ""
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start all; the scheduler has the port that it had before."""
        port = self.address.rpartition(":")[2] or "0"
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        self.scheduler = self._started("scheduler", "--port", port, "--scheduler-file", str(file))
        while not file.is_file() or not file.read_text():
            time.sleep(0.1)
        self.address = json.loads(file.read_text())["address"]
        self.workers = [
            self._started("worker", self.address, "--nthreads", "1", "--no-nanny") for _ in range(self.count)
        ]
        with distributed.Client(self.address) as watcher:
            watcher.wait_for_workers(self.count, timeout=120)

    def _started(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + role, *options]
        command += ["--host", "127.0.0.1", "--no-dashboard"]
        with (self.folder / "dask.log").open("ab") as log:
            return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

    def end(self) -> None:
        """Kill all."""
        for process in (*self.workers, *([self.scheduler] if self.scheduler else [])):
            process.kill()
            process.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster that ends with the block."""
    made = Cluster(folder)
    try:
        made.start()
        yield made
    finally:
        made.end()


def client(file: Path, out: Path, *options: str, width: int = 2) -> subprocess.Popen[bytes]:
    """`dynid campaign`, started; so many factors are merged by one task."""
    command = [
        sys.executable,
        "-c",
        _CLIENT.format(width),
        "campaign",
        str(file),
        "--out",
        str(out),
        *options,
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finished_runs(out: Path) -> int:
    """Lines of the journal."""
    journal = out / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.is_file() else 0


def merged_parts(out: Path) -> int:
    """Files of merged factors."""
    return len(list((out / "factors" / "merged").glob("*.npz")))


def wait_for(process: subprocess.Popen[bytes], done: Callable[[Path], int], out: Path, count: int) -> None:
    """Until so many runs or parts are done, or the command has ended."""
    while process.poll() is None and done(out) < count:
        time.sleep(0.005)


def different(one: Path, other: Path) -> list[str]:
    """Files of a campaign that are not equal byte by byte; the journal has times."""
    files = {
        file.relative_to(folder).as_posix()
        for folder in (one, other)
        for file in folder.rglob("*")
        if file.is_file() and file.name not in ("journal.jsonl", ".lock")
    }
    return [name for name in sorted(files) if _bytes(one / name) != _bytes(other / name)]


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def disturbed(folder: Path, local: Path, dask: Cluster) -> dict[str, object]:
    """A worker killed, then in another campaign the scheduler: what differs from local processes."""
    file = folder / "few.yaml"
    client(file, local, "--jobs", "2").wait()
    found: dict[str, object] = {"files": sum(path.is_file() for path in local.rglob("*"))}
    for what, done, count in (("runs", finished_runs, 5), ("tree", merged_parts, 2)):
        for victim in ("worker", "scheduler"):
            out = folder / f"{what}-{victim}"
            if what == "tree":  # all runs are there, nothing is merged
                shutil.copytree(local, out, copy_function=shutil.copy2)
                shutil.rmtree(out / "joined")
                shutil.rmtree(out / "factors" / "merged")
            run = client(file, out, "--cluster", dask.address)
            wait_for(run, done, out, count)
            before = done(out)
            if victim == "worker":
                dask.workers[0].kill()
                codes = [run.wait()]
                dask.end()
                dask.start()
            else:
                dask.end()
                codes = [run.wait()]
                dask.start()
                codes.append(client(file, out, "--cluster", dask.address).wait())
            found[f"{what}_{victim}_killed"] = {
                "exit": codes,
                "done_before": before,
                "different": different(local, out),
            }
    return found


def one_pass(folder: Path, out: Path) -> dict[str, float]:
    """Largest difference of a joined estimate from one pass, in relation to the value, and of its sigma."""
    entry = json.loads((out / "summary.json").read_text())["joined"][-1]
    joined = read_result(out / entry["folder"])
    logs = sorted(str(log) for log in (folder / "few" / entry["unit"]).iterdir())
    once = identify(folder / "arm.yaml", logs, **yaml.safe_load(_SETTINGS))
    pairs = list(zip(joined.parameters, once.parameters, strict=True))
    return {
        "logs": len(logs),
        "of_value": max(abs(a.value - b.value) / max(abs(b.value), b.sigma) for a, b in pairs),
        "of_sigma": max(abs(a.sigma / b.sigma - 1.0) for a, b in pairs),
    }


def whole(file: Path, out: Path, dask: Cluster, runs: int) -> dict[str, object]:
    """The large campaign, with the memory of its client."""
    begin = time.perf_counter()
    process = client(file, out, "--cluster", dask.address, width=32)
    memory: list[tuple[int, float]] = []
    while process.poll() is None:
        memory.append((finished_runs(out), _resident(process.pid)))
        time.sleep(0.5)
    wall = time.perf_counter() - begin
    document = json.loads((out / "summary.json").read_text())
    early = [size for count, size in memory if 0 < count <= runs // 10]
    late = [size for count, size in memory if runs * 9 // 10 < count < runs]
    return {
        "exit": process.returncode,
        "results": len(document["results"]),
        "set_aside": [entry["file"] for entry in document["set_aside"]],
        "changes": [[change["robot"], change["parameter"]] for change in document["changes"]],
        "joined": sum("folder" in entry for entry in document["joined"]),
        "client_mb": {
            "first_tenth": max(early, default=0.0),
            "last_tenth": max(late, default=0.0),
            "summary": max(size for _, size in memory),
        },
        "seconds": round(wall, 1),
    }


def _resident(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return round(sum(float(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024.0, 1)


def overhead(address: str | None, tasks: int = 40, seconds: float = 1.0) -> float:
    """Wall time of sleeping tasks on two workers beyond the ideal, in percent, start included."""
    done: set[int] = set()
    begin = time.perf_counter()
    work = partial(simulated_run, seconds, 600_000)
    for number, _ in completed(work, lambda: sorted(set(range(tasks)) - done), 2, address):
        done.add(number)
    return round(100.0 * ((time.perf_counter() - begin) / (tasks * seconds / 2.0) - 1.0), 1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=int, default=20)
    parser.add_argument("--dates", type=int, default=50)
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_logs(folder / "few", *_FEW, drifting=0, broken=1)
        write_logs(folder / "all", given.robots, given.dates, drifting=2, broken=_BROKEN)
        for name in ("few", "all"):
            (folder / f"{name}.yaml").write_text(_FILE.format(_SETTINGS, name), encoding="utf-8")
        with cluster(folder) as dask:
            local = folder / "local"
            print(json.dumps({"disturbed": disturbed(folder, local, dask)}), flush=True)
            print(json.dumps({"one_pass": one_pass(folder, local)}), flush=True)
            print(json.dumps({"overhead_percent": {"dask": overhead(dask.address)}}), flush=True)
            runs = given.robots * given.dates
            print(json.dumps({"whole": whole(folder / "all.yaml", folder / "out", dask, runs)}), flush=True)
        print(json.dumps({"overhead_percent": {"processes": overhead(None)}}), flush=True)


if __name__ == "__main__":
    main()
