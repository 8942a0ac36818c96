"""Round trips of model files: read, export new values, read back by MuJoCo or Pinocchio, compare efforts.

python -m benchmarks.model_zoo FOLDER...        every .urdf and .xml (MJCF) below the folders

Values are random real bodies and dissipative drives, so that nothing is equal by chance. Printed is the
largest difference of an effort at 200 random states, relative to the largest effort, and how many lines of
the file changed beside those of inertials, joints and settings of the compiler.
"""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from pathlib import Path

from tests.test_export_models import estimate_of, random_values

from dynid.common.errors import InputError
from dynid.experiment.provenance import experiment_of
from dynid.exporters import EXPORTERS
from dynid.exporters.certificate import certify
from dynid.exporters.full_set import full_set
from dynid.mechanism.load import load_robot

_NUMBERS = re.compile(
    r"<(inertial|inertia|mass|origin|joint|dynamics|compiler|body|freejoint|!--|/?link)|certificate|dynid"
)


def main() -> None:
    """One line for each file."""
    done: list[float] = []
    for folder in sys.argv[1:]:
        for file in sorted(one for kind in ("*.urdf", "*.xml") for one in Path(folder).rglob(kind)):
            try:
                figure, other = round_trip(file)
            except (InputError, ValueError, KeyError) as error:
                print(f"{file.name:40s} not read: {' '.join(str(error).split())[:110]}", flush=True)
                continue
            done.append(figure)
            print(f"{file.name:40s} {figure:.1e}   other lines {other}", flush=True)
    largest = max(done, default=0.0)
    print(f"{len(done)} models, largest difference {largest:.1e}, {sum(x < 1e-9 for x in done)} below 1e-9")


def round_trip(file: Path) -> tuple[float, int]:
    """Difference of the efforts, and lines that changed elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = load_robot(file)
        if not robot.joints or not robot.actuators:
            raise InputError("no joint or no motor")
        full = full_set(estimate_of(robot, random_values(robot)), experiment_of({"robot": str(file)}), robot)
        with tempfile.TemporaryDirectory() as folder:
            form = "urdf" if file.suffix == ".urdf" else "mjcf"
            made = EXPORTERS[form](full.estimate, full.mechanism, Path(folder))
            found = certify(made, full, [])
            if found.random_states is None:
                raise InputError(found.failure)
            texts = list(Path(folder).glob("*.diff"))
            lines = [line for path in texts for line in path.read_text(errors="replace").splitlines()[2:]]
    changed = [line for line in lines if line[:1] in "+-" and not _NUMBERS.search(line)]
    return found.random_states, len(changed)


if __name__ == "__main__":
    main()
