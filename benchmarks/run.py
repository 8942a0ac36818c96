"""Compare dynid with other tools on the same robot and trajectory, in one interleaved run; prints ratios.

`python benchmarks/run.py [--rounds 3] [--json FILE] [--allow-missing]`. Needs `pip install -e '.[dev]'
example-robot-data` and the peers; one that fails is an error unless `--allow-missing`. CPU time of one thread
(BENCH_CPU=0 for wall time): the machine may be shared, so compare only ratios of one run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import peers

HERE = Path(__file__).resolve().parent
JOBS = [
    (HERE, ["regressor_dynid.py", "--mode", "discard"]),
    (peers.FOLDER, ["regressor_pinocchio.py", "--mode", "discard"]),
    (HERE, ["regressor_dynid.py", "--mode", "fresh"]),
    (peers.FOLDER, ["regressor_pinocchio.py", "--mode", "fresh"]),
    (peers.FOLDER, ["regressor_figaroh.py"]),
    (HERE, ["identify_dynid.py"]),
    (peers.FOLDER, ["identify_scipy.py"]),
    (peers.FOLDER, ["identify_scipy.py", "--ftype", "fir"]),
    (peers.FOLDER, ["identify_figaroh.py"]),
    (HERE, ["stewart_dynid.py", "--n", "50000"]),
    (peers.FOLDER, ["stewart_scipy.py", "--n", "50000", "--repeat", "1"]),
]
WORK = {
    "regressor": "65 814 samples of a UR5",
    "identify": "65 814 samples of a UR5",
    "stewart_fk": "50 000 poses of a Stewart platform",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--robot", default="ur5")
    parser.add_argument("--json", type=Path, help="write the times of all tools")
    parser.add_argument("--allow-missing", action="store_true", help="peers may be missing")
    options = parser.parse_args()
    best: dict[str, dict[str, float]] = {bench: {} for bench in WORK}
    missing = set()
    for _ in range(options.rounds):
        for folder, problem in JOBS:
            record = run(folder, [*problem, "--robot", options.robot])
            if record is None:
                missing.add(problem[0])
                continue
            print(json.dumps(record), flush=True)
            label = " ".join(str(record.get(key, "")) for key in ("tool", "mode", "ftype")).strip()
            seconds = record.get("cpu_seconds", record["seconds"])
            known = best[record["bench"]]
            known[label] = min(seconds, known.get(label, float("inf")))
    for bench, times in best.items():
        show(bench, times)
    if options.json is not None:
        options.json.write_text(json.dumps(best, indent=1), encoding="utf-8")
    for name in sorted(missing):
        print(f"left out (failed or not installed): {name}")
    if missing and not options.allow_missing:
        raise SystemExit("peers are missing: install them, or give --allow-missing")


def run(folder: Path, command: list[str]) -> dict | None:
    environment = {"BENCH_CPU": "1", **os.environ}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def show(bench: str, times: dict[str, float]) -> None:
    print(f"\n{bench}: {WORK[bench]}, one thread, CPU seconds (best of all rounds), and times dynid's")
    for label, seconds in sorted(times.items(), key=lambda item: item[1]):
        same = "dynid fresh" if "fresh" in label or "figaroh" in label else "dynid discard"
        reference = times.get(same if bench == "regressor" else "dynid")
        ratio = f"{seconds / reference:8.1f} x" if reference else ""
        print(f"  {label:28s} {seconds:9.4f} s {ratio}")


if __name__ == "__main__":
    main()
