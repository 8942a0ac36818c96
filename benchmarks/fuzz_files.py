"""Damaged logs and descriptions: each must be read or refused, quickly and in little memory.

    python benchmarks/fuzz_files.py --cases 10000 --minutes 20

Cuts, lost and doubled bytes, wrong bits and large numbers at random places, equally often in each reader and
each format of descriptions. Exceptions other than input errors, warnings of libraries, more than 5 s and more
than 1 GB for one file are defects.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from tests.arms import arm, recording
from tests.log_files import PLAIN, ROS
from tests.test_more_descriptions import PAR, SDF
from tests.test_readers import STATES, damaged
from tests.workspace import ARM

from dynid.common.errors import InputError
from dynid.mechanism.load import load_robot
from dynid.motion.logs import read_log

_SLOW, _LARGE = 5.0, 2**30
URDF = (
    "<robot name='a'><link name='base'/><link name='up'><inertial><mass value='1.5'/><origin xyz='0 0 0.1'/>"
    "<inertia ixx='0.1' ixy='0' ixz='0' iyy='0.1' iyz='0' izz='0.1'/></inertial></link><joint name='turn'"
    " type='revolute'><parent link='base'/><child link='up'/><axis xyz='0 0 1'/><limit lower='-1' upper='1'"
    " effort='5' velocity='2'/></joint></robot>"
)
MJCF = (
    "<mujoco><worldbody><body name='up' pos='0 0 0.1'><joint name='turn' axis='0 0 1'/><inertial pos='0 0 0'"
    " mass='1' diaginertia='1 1 1'/></body></worldbody><actuator><motor joint='turn'/></actuator></mujoco>"
)
DESCRIPTIONS = {"a.yaml": ARM, "a.urdf": URDF, "a.xml": MJCF, "a.sdf": SDF, "a.par": PAR}
Target = tuple[str, Path, Callable[[], Any]]


def targets(folder: Path) -> list[Target]:
    """Name, the file to damage, and how it is read."""
    small = {name: values[:60] for name, values in recording(seconds=1.0, velocities=True).items()}
    made: list[Target] = []
    for kind, write in {**PLAIN, **ROS}.items():
        place = folder / kind
        place.mkdir()
        path = write(place, small)
        file = next(one for one in path.iterdir() if one.suffix != ".yaml") if path.is_dir() else path
        columns = STATES if kind in ROS else None
        made.append((kind, file, lambda path=path, columns=columns: read_log(path, arm(), columns=columns)))
    for name, text in DESCRIPTIONS.items():
        file = folder / name
        file.write_text(text, encoding="utf-8")
        made.append((name, file, lambda file=file: load_robot(file)))
    return made


def _status(key: str) -> int:
    """A size of this process, in [bytes] (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024


def main() -> None:
    """Damage, read, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="*", help="glob of formats, e.g. 'mat*'")
    given = parser.parse_args()
    end = time.monotonic() + 60.0 * given.minutes
    warnings.simplefilter("error")
    rng = np.random.default_rng(given.seed)
    counts = {"read": 0, "refused": 0, "defects": 0, "slow": 0, "large": 0}
    peak = 0
    with tempfile.TemporaryDirectory() as temporary:
        made = [target for target in targets(Path(temporary)) if fnmatch(target[0], given.only)]
        data = [file.read_bytes() for _, file, _ in made]
        for case in range(given.cases):
            if time.monotonic() > end:
                break
            k = case % len(made)
            name, file, read = made[k]
            file.write_bytes(damaged(data[k], rng))
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts again
            used, begin = _status("VmRSS"), time.process_time()
            try:
                read()
                counts["read"] += 1
            except InputError:
                counts["refused"] += 1
            except Exception as error:
                counts["defects"] += 1
                place = [at for at in traceback.extract_tb(error.__traceback__) if "dynid" in at.filename][-1]
                where = f"{Path(place.filename).name}, line {place.lineno}"
                print(f"case {case}, {name}, {where}: {type(error).__name__}: {error}"[:300], flush=True)
            if time.process_time() - begin > _SLOW:
                counts["slow"] += 1
                print(f"case {case}, {name}: {time.process_time() - begin:.1f} s", flush=True)
            taken = _status("VmHWM") - used
            peak = max(peak, taken)
            if taken > _LARGE:
                counts["large"] += 1
                print(f"case {case}, {name}: {taken >> 20} MB", flush=True)
    total = counts["read"] + counts["refused"] + counts["defects"]
    print(f"{total} cases in {len(made)} formats: {counts}; at most {peak >> 20} MB for one file")


if __name__ == "__main__":
    main()
