"""Dry friction of the forward engine is set-valued: joints come to rest, stay there, and start again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.excitation.random_motion import random_motion
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.regressor import tree_matrix
from dynid.simulation.plant.control import Controller
from dynid.simulation.plant.engines import run_plant
from dynid.simulation.plant.forward_plant import ForwardPlant
from dynid.simulation.plant.run import PlantRun
from dynid.simulation.plant.settings import PlantSettings
from dynid.simulation.prescribed import parameter_vector
from tests.built_in import truth_of

SLIDES = """
name: slides
gravity: [0, 0, 0]
joints:
  - {name: a, kind: prismatic, parent: base, child: box, mdh: {}}
  - {name: b, kind: prismatic, parent: base, child: crate, mdh: {}}
drive: {"*": [Fs, Fk]}
"""
STEP = 1e-3
# m: what is held is given 1e-10 of its acceleration (2 m/s^2) for a step, so that redundant owners can share.
CREEP = 1e-12


def pushed(
    tmp_path: Path, truth: dict[str, float], dq: tuple[float, float], efforts, text: str = SLIDES
) -> PlantRun:
    """A run of two independent slides of 2 kg each under efforts over time."""
    file = tmp_path / "slides.yaml"
    file.write_text(text, encoding="utf-8")
    robot = load_robot(str(file))
    values = dict.fromkeys((p.name for p in parameter_table(robot)), 0.0) | {"M_box": 2.0, "M_crate": 2.0}
    plant = ForwardPlant(robot, values | truth, np.zeros(2), np.array(dq), PlantSettings(), STEP)
    none = np.zeros(2)
    plant.drive(Controller(robot, (none, none), lambda t: (efforts(t), np.zeros((len(t), 2)))))
    return plant.recorded(np.arange(101) / 100.0, 10)


def test_a_box_stops_where_its_friction_stops_it(tmp_path: Path) -> None:
    run = pushed(tmp_path, {"Fs_a": 3.0, "Fs_b": 1.0}, (1.0, -0.4), lambda t: np.zeros((len(t), 2)))
    # s = v^2 m / (2 Fs), after t = v m / Fs = 0.667 s (within a step) and 0.8 s.
    np.testing.assert_allclose(run.q[-1], [1.0 / 3.0, -0.16], rtol=1e-9)  # rounding of the time of rest
    moving = run.t < 0.66
    np.testing.assert_allclose(run.dq[moving, 0], 1.0 - 1.5 * run.t[moving], atol=1e-12)
    assert np.abs(run.dq[run.t > 0.81]).max() < 1e-12
    assert run.energy_drift < 1e-12


def test_a_box_at_rest_moves_when_pushed_harder_than_its_friction(tmp_path: Path) -> None:
    """With Fk friction at rest is Fs + Fk; a ramp of 5 N/s reaches it at 0.8 s, a hand on b never does."""

    def ramp(t):
        return np.column_stack([5.0 * t, np.where(np.sin(9.0 * t) > 0, 0.99, -0.99)])

    run = pushed(tmp_path, {"Fs_a": 3.0, "Fk_a": 1.0, "Fs_b": 1.0}, (0.0, 0.0), ramp)
    assert np.abs(run.q[run.t <= 0.8, 0]).max() < CREEP
    assert run.dq[-1, 0] > 5.0 / 2.0 * 0.2**2 / 2.0  # faster than with 4 N at all speeds
    assert np.abs(run.q[:, 1]).max() < CREEP
    # It is let go at the next step: late by at most 1 ms.
    ends = pushed(tmp_path, {"Fs_a": 4.0}, (0.0, 0.0), ramp).q[-1, 0]
    assert ends == pytest.approx(5.0 / 2.0 * 0.2**3 / 6.0, rel=0.01)


def test_load_friction_of_a_body_at_rest_is_none(tmp_path: Path) -> None:
    """Load friction is a share of the effort that moves the body, here M ddq: none while the box is held."""
    truth, loaded = {"Fs_a": 0.5, "Fl_a": 0.3, "Fs_b": 0.5, "Fl_b": 0.3}, SLIDES.replace("Fk", "Fl")
    run = pushed(tmp_path, truth, (0.0, 0.0), lambda t: np.tile([0.49, 0.71], (len(t), 1)), loaded)
    assert np.abs(run.q[:, 0]).max() < CREEP
    np.testing.assert_allclose(run.ddq[:, 1], (0.71 - 0.5) / (2.0 * 1.3), rtol=1e-9)


def test_redundant_motors_share_what_holds_them() -> None:
    """Four motors with friction on three freedoms: at rest their friction is not unique, the rest is."""
    robot = load_robot("dualv")
    truth = truth_of("dualv")
    start = assembly_of(robot).start
    plant = ForwardPlant(robot, truth, start, np.zeros(len(robot.coordinates)), PlantSettings(), STEP)
    held = 0.9 * np.array([truth[f"Fs_{motor.name}"] for motor in robot.actuators])
    offset = np.array([truth.get(f"Off_{motor.name}", 0.0) for motor in robot.actuators])

    def pressed(t):
        size = np.where(t > 0.05, 4.0, 1.0)[:, None]  # beyond all friction after 0.05 s
        return offset + size * held * [1, -1, 1, 1], np.zeros((len(t), 4))

    none = np.zeros(4)
    plant.drive(Controller(robot, (none, none), pressed))
    run = plant.recorded(np.arange(11) / 100.0, 10)
    assert np.abs(run.q[:6] - start).max() < 1e-12
    assert np.abs(run.dq[-1]).max() > 0.01


@pytest.mark.parametrize("name", ["puma560", "orthoglide"])
def test_efforts_are_those_of_the_sign_wherever_joints_slip(name: str) -> None:
    robot = load_robot(name)
    truth = truth_of(name)
    motion = random_motion(robot, seed=3, frequency=0.5, draws=1)
    settings = PlantSettings(step=STEP)
    run = run_plant(robot, truth, motion, rate=200.0, duration=1.0, settings=settings, engine="dynid")
    owners = [robot.coordinates.index(joint) for joint in robot.drive]
    speeds = np.abs(run.dq[:, owners])
    # Joints slip or stick: none creeps.
    slips = speeds > 1e-6
    assert slips.mean() > 0.9
    all_slip = slips.all(axis=1)
    rows = tree_matrix(robot, run.q, run.dq, run.ddq) @ parameter_vector(robot, truth)
    applied = run.tau @ robot.actuator_map
    if robot.loops:
        A = assembly_of(robot)
        N = A.tangent(A.closure.values(run.q).A)
        rows, applied = (np.einsum("nvd,nv->nd", N, x) for x in (rows, applied))
    np.testing.assert_allclose(rows[all_slip], applied[all_slip], atol=1e-9 * np.abs(applied).max())
    assert run.energy_drift < 1e-4  # of the controller's feedforward, which changes within a step
