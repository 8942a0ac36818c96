"""Load friction in simulated motion: what the regressor says of the state that comes of it, and recovery."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.common.errors import InputError
from dynid.dynamics.freedoms import freedoms_of
from dynid.excitation.random_motion import random_motion
from dynid.kinematics.tension import motor_jacobian
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table, speed_map
from dynid.projection.load import load_model
from dynid.regressor.regressor import tree_matrix
from dynid.simulation.plant.engines import run_plant
from dynid.simulation.plant.settings import PlantSettings
from tests.built_in import truth_of
from tests.physics.test_friction import geared, with_friction

TERMS = ("Ia", "Fv", "Fs", "Fl")
SIZE = {"Ia": 0.1, "Fv": 0.5, "Fs": 0.3, "Fl": 0.15}


def robot_and_truth(name: str, at_motors: bool):
    """A built-in robot with load friction, motors behind gears if asked for."""
    robot = geared(name) if at_motors else with_friction(name, TERMS)
    robot = replace(robot, drive=dict.fromkeys(robot.drive, TERMS))
    known = truth_of(name)
    table = parameter_table(robot)
    return robot, {p.name: SIZE.get(p.symbol, known.get(p.name, 0.0)) for p in table}


@pytest.mark.parametrize(
    ("name", "at_motors", "tension", "engine"),
    [
        ("scara", False, 0.0, "dynid"),
        ("scara", True, 0.0, "dynid"),
        ("fivebar", False, 0.0, "dynid"),
        ("dualv", False, 3.0, "dynid"),
        ("scara", False, 0.0, "mujoco"),
        ("dualv", False, 3.0, "mujoco"),
    ],
)
def test_the_regressor_explains_the_motion(name: str, at_motors: bool, tension: float, engine: str) -> None:
    if engine == "mujoco":
        pytest.importorskip("mujoco")
    robot, truth = robot_and_truth(name, at_motors)
    motion = random_motion(load_robot(name), seed=2, frequency=0.5, draws=1)
    run = run_plant(
        robot,
        truth,
        motion,
        rate=200.0,
        duration=0.4,
        settings=PlantSettings(step=5e-4, tension=tension),
        engine=engine,
    )
    chi = np.array(list(truth.values()))
    N = freedoms_of(robot).tangent(run.q)
    load = load_model(robot, parameter_table(robot), chi)(run.q, run.dq, run.ddq, N, run.tau)
    tree = tree_matrix(robot, run.q, run.dq, run.ddq, load=load) @ chi
    rows = np.einsum("nvd,nv->nd", N, tree)
    pushed = np.einsum("nad,na->nd", motor_jacobian(robot, N), run.tau)
    speeds = np.abs(run.dq @ speed_map(robot, list(robot.drive)).T)
    widths = np.array([run.width.get(owner, 1e-7) for owner in robot.drive])  # dynid's joints stick or slip
    sliding = (speeds > 20.0 * widths).all(axis=1)
    assert sliding.sum() > 20
    # Rounding of tanh and of the small solve; MuJoCo's loops are springs.
    bound = 1e-9 if engine == "dynid" else 1e-5 if robot.is_closed else 1e-7
    np.testing.assert_allclose(rows[sliding], pushed[sliding], atol=bound * np.abs(pushed).max())
    without = np.where([p.symbol == "Fl" for p in parameter_table(robot)], 0.0, chi)
    bare = np.einsum("nvd,nv->nd", N, tree_matrix(robot, run.q, run.dq, run.ddq) @ without)
    assert np.abs(bare - pushed)[sliding].max() > 0.01 * np.abs(pushed).max()  # it is felt


def test_a_joint_that_locks_itself_is_refused() -> None:
    robot, truth = robot_and_truth("scara", False)
    motion = random_motion(load_robot("scara"), seed=2, frequency=0.5, draws=1)
    with pytest.raises(InputError, match="Fl_elbow = 1: a joint with a value of 1 or more is self-locking"):
        run_plant(robot, {**truth, "Fl_elbow": 1.0}, motion, rate=100.0, duration=0.1, engine="dynid")


def test_simulated_load_friction_is_identified(tmp_path: Path, monkeypatch) -> None:
    """The user's way: simulate with Fl under gravity, identify with Fl."""
    monkeypatch.chdir(tmp_path)
    text = Path(str(load_robot("ur5").file)).read_text(encoding="utf-8")
    source = Path(str(load_robot("ur5").file)).parent
    text = text.replace("[Ia, Fv, Fs, Off]", "[Ia, Fv, Fs, Off, Fl]")
    for line in text.splitlines():
        if line.startswith("source:"):
            text = text.replace(line, f"source: {source / line.partition(':')[2].split('#')[0].strip()}")
    Path("arm.yaml").write_text(text, encoding="utf-8")
    shares = {f"Fl_{name}": 0.05 + 0.02 * i for i, name in enumerate(load_robot("ur5").coordinates)}
    known = truth_of("ur5")
    Path("truth.yaml").write_text(
        "\n".join(f'"{name}": {float(value)!r}' for name, value in {**known, **shares}.items()),
        encoding="utf-8",
    )
    Path("how.yaml").write_text(
        "engine: dynid\nrate: 500\nmotion: {frequency: 0.1, draws: 5}\ncontroller: {model: truth}\n"
        "encoder: 2*pi/2^19\neffort: 0.1\n",
        encoding="utf-8",
    )
    options = ["--config", "how.yaml", "--truth", "truth.yaml", "--out", "log.csv"]
    made = CliRunner().invoke(main, ["simulate", "arm.yaml", *options])
    assert made.exit_code == 0, made.output
    found = CliRunner().invoke(
        main, ["identify", "--robot", "arm.yaml", "--log", "log.csv", "--out", "result"]
    )
    assert found.exit_code == 0, found.output
    rows = {one["name"]: one for one in json.loads(Path("result/result.json").read_text())["parameters"]}
    told = [name for name in shares if rows[name]["sigma"] < 0.02]
    assert len(told) >= 3  # the joints that gravity and inertia load
    for name in told:
        # Four deviations: six parameters, and friction that is rounded off at reversals.
        assert abs(rows[name]["value"] - shares[name]) < 4.0 * rows[name]["sigma"] + 2e-3
