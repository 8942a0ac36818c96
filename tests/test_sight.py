"""Controllers that see their encoders: what they read, what they make of it, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.common.errors import InputError
from dynid.robots.truth import Truth, true_values
from dynid.simulation.motion import MotionChoice, chosen_motion
from dynid.simulation.plant.control import followed
from dynid.simulation.plant.controller_sensors import controller_rate, sight_of
from dynid.simulation.plant.forward_plant import ForwardPlant
from dynid.simulation.plant.reference import position_map, reference_along
from dynid.simulation.plant.settings import ControllerSettings, PlantSettings, substeps
from dynid.simulation.sensors import Sensing, recorded
from dynid.simulation.simulation import Simulation, simulate
from tests.built_in import robot_of

ENCODERS = Sensing(resolution=1e-4, position_sigma=3e-5, position_delay=0.0023)
MOTION = MotionChoice(frequency=0.5, draws=1)


def simulated(name: str, engine: str = "dynid", seed: int = 0, **controller: object):
    settings = Simulation(
        engine,
        rate=500.0,
        duration=0.2,
        seed=seed,
        motion=replace(MOTION, seed=1),
        beliefs="truth",
        truth=Truth(values={"Fs_*": 0.0}),
        plant=PlantSettings(step=5e-4, controller=ControllerSettings(**controller)),  # type: ignore[arg-type]
        sensing=ENCODERS,
    )
    return simulate(robot_of(name), settings)


@pytest.mark.parametrize("name", ["scara", "dualv"])
def test_efforts_follow_from_the_log(name: str) -> None:
    robot = robot_of(name)
    settings = ControllerSettings(rate=500.0, cutoff=60.0)
    values = true_values(robot, Truth())[0]
    motion = chosen_motion(robot, MOTION, 1)
    reference = reference_along(robot, values, motion, rate=500.0, duration=0.2, payloads=(), tension=0.0)
    # Two ticks late: between ticks, at which efforts jump, recorder and controller interpolate otherwise.
    encoders = replace(ENCODERS, position_delay=0.004)
    sight = sight_of(robot, settings, encoders, 500.0, 0.2, 3)
    plant = ForwardPlant(robot, values, reference.q, reference.dq, PlantSettings(), 1e-3)
    felt, width = plant.felt, plant.drives.width
    controller = plant.drive(followed(robot, reference, settings, felt, values, (), width, sight))
    run = replace(plant.recorded(np.arange(101) / 500.0, 2), sight=sight)
    # The recorder reads the same encoders: its log is what the controller saw.
    y = recorded(run.course(robot), encoders, np.random.default_rng(0)).q
    v, held = run.dq[0] @ robot.actuator_map.T, []
    wanted = controller._wanted(run.t)[0]
    Q = position_map(robot)[:, [robot.positions.index(one) for one in robot.measured_positions]]
    before = (Q @ run.q[0][[robot.positions.index(one) for one in robot.measured_positions]]) - 0.002 * v
    for k, seen in enumerate(y @ Q.T):
        v = v + (1.0 - np.exp(-2.0 * np.pi * 60.0 / 500.0)) * ((seen - before) * 500.0 - v)
        before = seen
        held.append(wanted[k] - controller.tables.kp * seen - controller.tables.kd * v)
    told = 0.5 * (np.array(held) + np.array([held[0], *held[:-1]]))
    # Rounding, times gains of some thousands.
    np.testing.assert_allclose(run.tau, told, atol=1e-9 * np.abs(told).max())


@pytest.mark.parametrize("kind", ["feedforward", "computed_torque"])
def test_engines_read_the_same_encoders(kind: str) -> None:
    pytest.importorskip("mujoco")
    ours, other = (simulated("scara", engine, kind=kind).course for engine in ("dynid", "mujoco"))
    # Both integrate to some 1e-9, but an encoder that stands near a step may round otherwise once: a step of
    # 1e-4 rad moves the robot by a part of it.
    assert np.abs(ours.q - other.q).max() < 3e-5
    np.testing.assert_array_equal(ours.noise, other.noise)


def test_noise_moves_the_robot_and_is_seeded() -> None:
    first, again, other = (simulated("fivebar", seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.course.tau, again.course.tau)
    assert np.abs(first.course.tau - other.course.tau).max() > 0.0
    ideal = [simulated("fivebar", seed=seed, feedback="truth").course.tau for seed in (0, 1)]
    np.testing.assert_array_equal(*ideal)


def test_another_recording_has_noise_that_the_controller_answered() -> None:
    found = simulated("fivebar")
    first, again = found.recording(5), found.recording(5)
    np.testing.assert_array_equal(first.tau, again.tau)
    own, other = found.recording(), found.recording(6)
    assert np.abs(own.tau - first.tau).max() > 0.0
    assert np.abs(other.tau - first.tau).max() > 0.0


def test_a_controller_slower_than_the_log_holds_its_efforts() -> None:
    tau = simulated("fivebar", rate=100.0, bandwidth=3.0).course.tau
    moves = np.abs(np.diff(tau, axis=0)).max(axis=1) > 0.0
    # Half-way at a tick, whole a sample later, then still for three samples.
    assert moves[:50].reshape(-1, 5).any(axis=0).tolist() == [True, False, False, False, True]


def test_computed_torque_believes_what_the_encoders_say() -> None:
    fine = replace(ENCODERS, resolution=1e-7, position_sigma=0.0, position_delay=0.0)
    away = {}
    for feedback in ("encoders", "truth"):
        controller = ControllerSettings("computed_torque", 5.0, feedback=feedback, rate=4000.0, cutoff=1500.0)
        settings = Simulation(
            "dynid",
            rate=500.0,
            duration=0.3,
            motion=MOTION,
            beliefs="truth",
            truth=Truth(values={"Fs_*": 0.0}),
            plant=PlantSettings(step=2.5e-4, controller=controller),
            sensing=fine,
        )
        course = simulate(robot_of("dualv"), settings).course
        away[feedback] = np.abs(course.q - course.q_ref).max()
    # A true state leaves the error of the integration; encoders come half a tick and a low-pass late.
    assert away["truth"] < 1e-7 < away["encoders"] < 2e-4


@pytest.mark.parametrize(
    ("controller", "match"),
    [
        ({"rate": 300.0}, "no common clock"),
        ({"bandwidth": 100.0}, "unstable with encoders that are read every 0.001 s"),
        ({"feedback": "encoder"}, "feedback 'encoder' is not known; did you mean 'encoders'"),
        ({"cutoff": -1.0}, "controller: cutoff -1 is not positive"),
    ],
)
def test_controllers_that_cannot_be_are_refused(controller, match: str) -> None:
    with pytest.raises(InputError, match=match):
        simulated("fivebar", **controller)


@pytest.mark.parametrize(
    ("ticks", "rate", "step", "n"),
    [(1000.0, 500.0, 1e-3, 2), (2000.0, 500.0, 1e-3, 4), (100.0, 500.0, 1e-3, 2)],
)
def test_whole_steps_fit_into_a_tick(ticks: float, rate: float, step: float, n: int) -> None:
    assert substeps(rate, step, ticks) == n


def test_the_default_rate_is_a_multiple_of_the_logs() -> None:
    assert [controller_rate(ControllerSettings(), rate) for rate in (100.0, 400.0, 2000.0)] == [
        1000.0,
        800.0,
        2000.0,
    ]


def test_the_command_takes_the_feedback(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    common = ["simulate", "fivebar", "--engine", "dynid", "--duration", "0.1"]
    assert CliRunner().invoke(main, [*common, "--feedback", "truth"]).exit_code == 0
    refused = CliRunner().invoke(main, [*common, "--feedback", "nothing"])
    assert refused.exit_code == 2
    assert "feedback 'nothing' is not known" in refused.output
