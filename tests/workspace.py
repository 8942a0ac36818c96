"""A folder with one valid file of every kind, small enough that a command takes a fraction of a second."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner, Result

from dynid.cli import main

ARM = """\
schema: dynid.robot/1
name: arm
gravity: [0, 0, -9.81]
symbols: {d2: 0.5}
joints:
  - {name: joint_1, kind: revolute, parent: base, child: upper, mdh: {alpha: pi/2}}
  - {name: joint_2, kind: revolute, parent: upper, child: fore, mdh: {d: d2}}
bodies:
  upper: {prior: {M: 4.0, com: [0.25, 0, 0.01], XX: 0.02, YY: 0.4, ZZ: 0.4}}
  fore: {prior: {M: 2.0, com: [0.2, 0.01, 0], XX: 0.01, YY: 0.15, ZZ: 0.15}}
drive: {"joint_*": [Fv, Fs, Off]}
payloads: {ball: {body: fore, xyz: [0.4, 0, 0], known: {M: 1.5, com: [0, 0, 0], XX: 0.01, YY: 0.01, ZZ: 0.01,
    XY: 0, XZ: 0, YZ: 0}}}
ties: {both: [[upper, fore]]}
limits: {joint_1: {q: [-2, 2], dq: 4, ddq: 20, tau: 100}, joint_2: {q: [-2, 2], dq: 4, ddq: 20, tau: 60}}
"""
TRUTH = """\
{M_upper: 4, MX_upper: 1, MY_upper: 0, MZ_upper: 0.04, XX_upper: 0.03, XY_upper: 0, XZ_upper: 0,
 YY_upper: 0.65, YZ_upper: 0, ZZ_upper: 0.65, Fv_joint_1: 0.5, Fs_joint_1: 0.3, Off_joint_1: 0.1,
 M_fore: 2, MX_fore: 0.4, MY_fore: 0.02, MZ_fore: 0, XX_fore: 0.011, XY_fore: 0, XZ_fore: 0, YY_fore: 0.24,
 YZ_fore: 0, ZZ_fore: 0.24, Fv_joint_2: 0.4, Fs_joint_2: 0.2, Off_joint_2: -0.1}
"""
SIMULATION = """\
schema: dynid.simulation/1
rate: 200
duration: 4
motion: {kind: fourier, harmonics: 4, frequency: 0.25, draws: 2, seed: 2}
encoder: {resolution: 1.0e-5}
effort: {sigma: 0.05}
"""
EXPERIMENT = """\
robot: arm.yaml
logs: [log.csv]
filter: {cutoff: 20, decimate: 4}
"""


def dynid(*arguments: str) -> Result:
    """Run a command as a user does, in this process; a traceback fails the test."""
    found = CliRunner().invoke(main, arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def make_workspace(folder: Path) -> Path:
    """Robot, truth, settings, experiment, two logs and a result in a folder."""
    texts = {"arm": ARM, "truth": TRUTH, "simulation": SIMULATION, "experiment": EXPERIMENT}
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    simulate = ("simulate", "arm.yaml", "--truth", "truth.yaml", "--config", "simulation.yaml")
    with chdir(folder):
        for more in (("--out", "log.csv"), ("--seed", "5", "--out", "other.parquet")):
            assert dynid(*simulate, *more).exit_code == 0
        assert dynid("identify", "experiment.yaml", "--out", "result").exit_code == 0
    return folder


def columns(file: Path) -> dict[str, list[str]]:
    """Cells of a CSV file by column."""
    header, *rows = (line.split(",") for line in file.read_text(encoding="utf-8").splitlines())
    return {name: [row[j] for row in rows] for j, name in enumerate(header)}


def write_columns(file: Path, cells: dict[str, list[str]]) -> None:
    """The other way round."""
    rows = [list(cells), *map(list, zip(*cells.values(), strict=True))]
    file.write_text("\n".join(",".join(row) for row in rows) + "\n", encoding="utf-8")
