"""All benchmarks by one command: ratios to other tools on the same robot and trajectory, and scaling curves.

`python benchmarks/run.py [--rounds 3] [--json FILE] [--svg FILE] [--no-curves] [--allow-missing]`. Needs
`pip install -e '.[dev]' example-robot-data` and the peers; one that fails is an error unless
`--allow-missing`. Tools are interleaved. CPU time of one thread (BENCH_CPU=0 for wall time): the machine may
be shared, so compare only ratios of one run. Curves are those of `benchmarks/scaling.py`, drawn into the
documentation.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import peers

HERE = Path(__file__).resolve().parent
CURVES = HERE.parent / "docs" / "images" / "scaling.svg"
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
    (HERE, ["end_to_end.py", "--tool", "dynid"]),
    (HERE, ["end_to_end.py", "--tool", "figaroh"]),
    (HERE, ["stewart_dynid.py", "--n", "50000"]),
    (peers.FOLDER, ["stewart_scipy.py", "--n", "50000", "--repeat", "1"]),
]
WORK = {
    "regressor": "65 814 samples of a UR5",
    "identify": "65 814 samples of a UR5",
    "end_to_end": "65 814 samples of a UR5 from a Parquet file to written results, imports included",
    "stewart_fk": "50 000 poses of a Stewart platform",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--robot", default="ur5")
    parser.add_argument("--json", type=Path, help="write times and ratios of all tools, and the curves")
    parser.add_argument("--svg", type=Path, default=CURVES, help="where the curves are drawn")
    parser.add_argument("--no-curves", action="store_true", help="only the comparison with other tools")
    parser.add_argument("--allow-missing", action="store_true", help="peers may be missing")
    options = parser.parse_args()
    best: dict[str, dict[str, float]] = {bench: {} for bench in WORK}
    missing: dict[str, str] = {}
    for _ in range(options.rounds):
        for folder, problem in JOBS:
            name = " ".join(problem)
            if name in missing:
                continue
            record = run(folder, [*problem, "--robot", options.robot])
            if isinstance(record, str):
                missing[name] = record
                continue
            print(json.dumps(record), flush=True)
            label = " ".join(str(record.get(key, "")) for key in ("tool", "mode", "ftype")).strip()
            seconds = record.get("cpu_seconds", record["seconds"])
            known = best[record["bench"]]
            known[label] = min(seconds, known.get(label, float("inf")))
    for bench, times in best.items():
        show(bench, times)
    for name, error in sorted(missing.items()):
        print(f"left out: {name}: {error}")
    curves = {} if options.no_curves else scaling(options.svg)
    if options.json is not None:
        ratios = {
            bench: {label: ratio(bench, label, times) for label in times} for bench, times in best.items()
        }
        content = {"seconds": best, "times_dynid": ratios, "missing": missing, "curves": curves}
        options.json.write_text(json.dumps(content, indent=1), encoding="utf-8")
    if missing and not options.allow_missing:
        raise SystemExit("peers are missing: install them, or give --allow-missing")


def run(folder: Path, command: list[str]) -> dict | str:
    """The record that a script prints, or the last line of its error."""
    environment = {"BENCH_CPU": "1", **os.environ}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if lines and done.returncode == 0:
        return json.loads(lines[-1])
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def scaling(svg: Path) -> dict:
    """Curves of `benchmarks/scaling.py`, which prints and draws them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "curves.json"
        command = [
            sys.executable,
            "-m",
            "benchmarks.scaling",
            "--json",
            str(file),
            "--svg",
            str(svg.resolve()),
        ]
        path = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        subprocess.run(command, cwd=HERE.parent, env={**os.environ, "PYTHONPATH": path}, check=True)
        return json.loads(file.read_text(encoding="utf-8"))


def ratio(bench: str, label: str, times: dict[str, float]) -> float | None:
    """Times the seconds that dynid needs for the same."""
    same = "dynid fresh" if "fresh" in label or "figaroh" in label else "dynid discard"
    reference = times.get(same if bench == "regressor" else "dynid")
    return times[label] / reference if reference else None


def show(bench: str, times: dict[str, float]) -> None:
    print(f"\n{bench}: {WORK[bench]}, one thread, CPU seconds (best of all rounds), and times dynid's")
    for label, seconds in sorted(times.items(), key=lambda item: item[1]):
        times_dynid = ratio(bench, label, times)
        print(f"  {label:28s} {seconds:9.4f} s" + (f" {times_dynid:8.1f} x" if times_dynid else ""))


if __name__ == "__main__":
    main()
