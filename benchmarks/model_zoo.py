"""Round trips of models: export values, read them back by MuJoCo or Pinocchio, compare efforts.

python -m benchmarks.model_zoo WHAT...    a folder (every .urdf and .xml (MJCF) below it), a built-in robot,
                                          `robots` (all of them), or an experiment file (.yaml)

Values of files and built-in robots are random real bodies and dissipative drives, so that nothing is equal by
chance; an experiment is identified with `auto: off`, and the nearest physically consistent set is written.
Files are edited in their own format, other robots get a new URDF, MJCF and SDF. Printed are the largest
difference of an effort at 200 random states, relative to the largest effort, between the file and the
estimate (of an experiment: the set that was written), and how many lines of an edited file changed beside
those of inertials, joints and settings of the compiler. `rounded` marks a description with rounded angles or
dimensions (`snapped-angle`, `rounded-geometry` of the warnings): its angles are compared as written.
"""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.test_export_models import estimate_of, random_values

from dynid.common.errors import InputError
from dynid.experiment.experiment import read_experiment
from dynid.experiment.provenance import experiment_of
from dynid.exporters import EXPORTERS
from dynid.exporters.certificate import certify
from dynid.mechanism.load import builtin_robots, load_robot
from dynid.pipeline import run_experiment
from dynid.prediction.full_set import FullSet, full_set
from dynid.prediction.result_values import saved

_NUMBERS = re.compile(
    r"<(inertial|inertia|mass|origin|joint|dynamics|compiler|body|freejoint|!--|/?link)|certificate|dynid|estimator"
)
_FORMATS = {".urdf": "urdf", ".xml": "mjcf", ".sdf": "sdf"}


def main() -> None:
    """One line for each file and format."""
    done: list[float] = []
    for what in sys.argv[1:]:
        for name in asked(what):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    full = values_of(name)
                    found = {form: round_trip(full, form) for form in formats_of(full)}
            except (InputError, ValueError, KeyError) as error:
                print(f"{Path(name).name:34s} not read: {' '.join(str(error).split())[:110]}", flush=True)
                continue
            rounded = "rounded" if is_rounded(full) else ""
            for form, (figure, other) in found.items():
                done.append(figure)
                lines = "new file" if other is None else f"other lines {other}"
                print(f"{Path(name).name:34s} {form:5s} {figure:.1e}   {lines:15s} {rounded}", flush=True)
    largest = max(done, default=0.0)
    print(f"{len(done)} files, largest difference {largest:.1e}, {sum(x < 1e-9 for x in done)} below 1e-9")


def asked(what: str) -> Iterator[str]:
    """Files and robots that an argument names."""
    if what == "robots":
        yield from builtin_robots()
    elif Path(what).is_dir():
        yield from sorted(str(one) for kind in ("*.urdf", "*.xml") for one in Path(what).rglob(kind))
    else:
        yield what


def values_of(name: str) -> FullSet:
    """A full set of parameters: random, or from the logs of an experiment."""
    if name.endswith(".yaml"):
        full = full_set(*saved(run_experiment(read_experiment(name).changed(auto="off"))), "nearest")
        return replace(full, reference=full.chi)  # the nearest set has other efforts than the estimate
    robot = load_robot(name)
    if not robot.joints or not robot.actuators:
        raise InputError("no joint or no motor")
    return full_set(estimate_of(robot, random_values(robot)), experiment_of({"robot": name}), robot)


def formats_of(full: FullSet) -> list[str]:
    """Its own format; all of them for a robot that was not read from such a file."""
    suffix = Path(full.mechanism.sources[0]).suffix if full.mechanism.sources else ""
    return [_FORMATS[suffix]] if suffix in _FORMATS else list(_FORMATS.values())


def is_rounded(full: FullSet) -> bool:
    """Whether its description has rounded numbers that dynid reads as exact."""
    snapped = any(one.code == "snapped-angle" for one in full.mechanism.notices)
    return snapped or any("rounded" in note for note in full.notes)


def round_trip(full: FullSet, form: str) -> tuple[float, int | None]:
    """Difference of the efforts, and lines that changed elsewhere; None: the file is new."""
    with tempfile.TemporaryDirectory() as folder:
        found = certify(EXPORTERS[form](full.estimate, full.mechanism, Path(folder)), full, [])
        if found.random_states is None:
            raise InputError(found.failure)
        texts = list(Path(folder).glob("*.diff"))
        lines = [line for path in texts for line in path.read_text(errors="replace").splitlines()[2:]]
    changed = [line for line in lines if line[:1] in "+-" and not _NUMBERS.search(line)]
    figure = found.random_states if found.as_written is None else found.as_written
    return figure, len(changed) if texts else None


if __name__ == "__main__":
    main()
