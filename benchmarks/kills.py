"""Commands killed at random moments: the next run must end with the bytes of one that was never killed.

    python benchmarks/kills.py --kills 100 --seed 0

`identify` and `campaign` replace an older result, `excite` continues its journal. After each kill the folder
of `identify` must contain the older result or the new one, byte by byte. Every fifth run may finish.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

_FINISHED = 5  # of that many runs one is not killed
_COMMANDS = {
    "identify": "identify --robot rrr3 --log new.csv --out result",
    "campaign": "campaign runs.yaml --out result --jobs 1",
    "excite": "excite rrr3 --starts 6 --hops 1 --harmonics 3 --period 4 --jobs 1 --out result",
}
_SHARES = {"identify": 0.5, "campaign": 0.2, "excite": 0.3}
_CAMPAIGN = "schema: dynid.campaign/1\nruns:\n  - {robot: rrr3, logs: ['{run}.csv']}\n"


def dynid(command: str, folder: Path, seconds: float | None = None) -> bool:
    """Run a command; whether it ended before it was killed."""
    with subprocess.Popen(
        [sys.executable, "-m", "dynid", *command.split()],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
        try:
            run.wait(timeout=seconds)
            return True
        except subprocess.TimeoutExpired:
            run.kill()
            return False


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a result."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def prepared(folder: Path) -> None:
    """Two logs and a campaign."""
    for name, seed in (("old", 1), ("new", 2)):
        dynid(f"simulate rrr3 --duration 3 --seed {seed} --out {name}.csv", folder)
    (folder / "runs.yaml").write_text(_CAMPAIGN)


def tortured(kind: str, folder: Path, kills: int, rng: np.random.Generator) -> list[str]:
    """What went wrong in `kills` killed runs of a command."""
    command, result = _COMMANDS[kind], folder / "result"
    begin = time.monotonic()
    dynid(command, folder)
    typical = time.monotonic() - begin
    right = content(result)
    if not right:
        raise SystemExit(f"'dynid {command}' writes no result")
    old: dict[str, bytes] | None = None
    if kind == "identify":
        dynid(command.replace("new", "old"), folder)
        old = content(result)
    wrong, done = [], 0
    while done < kills:
        begin = time.monotonic()
        ended = dynid(command, folder, typical * rng.uniform(0.1, 1.1))
        if ended:
            typical = time.monotonic() - begin
        done += not ended
        if old is not None and content(result) not in (old, right):
            wrong.append(f"{kind}, kill {done}: neither the older result nor the new one")
        if done % _FINISHED and not ended:
            continue
        dynid(command, folder)
        if content(result) != right:
            differ = [name for name, data in content(result).items() if right.get(name) != data]
            wrong.append(f"{kind}, kill {done}: other bytes in {differ or 'missing files'}")
        if old is not None:
            dynid(command.replace("new", "old"), folder)
    dynid(command, folder)
    left = sorted(file.name for file in folder.iterdir())
    print(f"{kind}: {done} kills, {len(wrong)} wrong; beside the result: {left}", flush=True)
    return wrong


def main() -> None:
    """Kill and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=_SHARES, default=None)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    wrong: list[str] = []
    for kind, share in _SHARES.items() if given.only is None else [(given.only, 1.0)]:
        with tempfile.TemporaryDirectory() as temporary:
            prepared(Path(temporary))
            wrong += tortured(kind, Path(temporary), round(share * given.kills), rng)
    print("\n".join([*wrong, f"{given.kills} kills: {len(wrong)} wrong"]))


if __name__ == "__main__":
    main()
