"""The virtual robot: engines agree, sensors do what is asked, settings are strict, bad input is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.common.errors import InputError
from dynid.excitation.friction import ExtraFriction, FrictionLaw
from dynid.excitation.platform_series import guided
from dynid.excitation.random_motion import random_motion
from dynid.mechanism.mechanism import Actuator
from dynid.motion.logs import read_log
from dynid.pipeline import identify_logs
from dynid.robots.truth import Truth, true_values
from dynid.simulation.files import write_simulated
from dynid.simulation.motion import MotionChoice, SampledMotion, file_motion
from dynid.simulation.plant.settings import ControllerSettings, PlantSettings
from dynid.simulation.sensors import Course, Sensing, recorded
from dynid.simulation.simulation import Simulation, simulate
from dynid.simulation.simulation_file import default_simulation, read_simulation, with_flags
from tests.built_in import robot_of
from tests.trajectories import write_trajectory

IDEAL = ControllerSettings(feedback="truth")
SHORT = {"rate": 100.0, "duration": 0.1, "motion": MotionChoice(frequency=0.5, draws=1)}


@pytest.fixture(autouse=True, scope="module")
def _defaults_once() -> Iterator[None]:
    """Settings that a file lacks are read once for each robot, not once for each file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dynid.simulation.simulation_file.default_simulation", cache(default_simulation))
        yield


def sine_course(n: int = 2001, rate: float = 1000.0) -> Course:
    t = np.arange(n) / rate
    w = np.array([5.0, 9.0])
    q, dq, ddq = np.sin(t[:, None] * w), w * np.cos(t[:, None] * w), -(w**2) * np.sin(t[:, None] * w)
    return Course(t, q, dq, ddq, 3.0 * dq)


# Sensors


def test_perfect_sensors_change_nothing() -> None:
    course = sine_course()
    found = recorded(course, Sensing(), np.random.default_rng(0))
    np.testing.assert_array_equal(found.q, course.q)
    np.testing.assert_array_equal(found.tau, course.tau)
    assert found.dq is None


def test_delay_and_jitter_are_those_of_the_motion_itself() -> None:
    course = sine_course()
    late = recorded(course, Sensing(position_delay=0.0137, velocity=True), np.random.default_rng(0))
    t = course.t[100:] - 0.0137
    w = np.array([5.0, 9.0])
    # Quintics between ticks of 1 ms: (9 * 1e-3)^6 / 46080 of the amplitude, below rounding.
    np.testing.assert_allclose(late.q[100:], np.sin(t[:, None] * w), atol=1e-13)
    np.testing.assert_allclose(late.dq[100:], w * np.cos(t[:, None] * w), atol=1e-10)
    np.testing.assert_array_equal(
        late.q[:13], np.broadcast_to(course.q[0], (13, 2))
    )  # still before the start
    np.testing.assert_array_equal(late.tau, course.tau)
    loose = recorded(course, Sensing(jitter=1e-4), np.random.default_rng(0))
    assert 0.9e-4 < np.std(loose.t - course.t) < 1.1e-4  # 2001 draws: 1.6 %
    np.testing.assert_allclose(loose.q[5:-5], np.sin(loose.t[5:-5, None] * w), atol=1e-12)
    lying = recorded(course, Sensing(jitter=1e-4, stamps="nominal"), np.random.default_rng(0))
    np.testing.assert_array_equal(lying.t, course.t)
    np.testing.assert_array_equal(lying.q, loose.q)


def test_gain_resolution_and_dropped_samples() -> None:
    course = sine_course()
    sensing = Sensing(gain=np.array([2.0, 0.5]), effort_resolution=0.01, dropped=0.1, reference=True)
    found = recorded(course, sensing, np.random.default_rng(3))
    assert 0.07 < 1.0 - len(found.t) / len(course.t) < 0.13  # 2001 draws of 0.1: 0.7 %
    rows = np.searchsorted(course.t, found.t)
    assert np.abs(found.tau - course.tau[rows] / [2.0, 0.5]).max() <= 0.005 + 1e-12
    np.testing.assert_array_equal(found.q_ref, course.q[rows])
    assert found.t[0] == course.t[0]
    assert found.t[-1] == course.t[-1]


def test_encoder_steps_may_begin_anywhere() -> None:
    course = sine_course()
    sensing = Sensing(resolution=1e-2, anywhere=True)
    one, other = (recorded(course, sensing, np.random.default_rng(seed)).q for seed in (1, 2))
    for q in (one, other):
        assert np.abs(q - course.q).max() <= 0.5e-2 + 1e-12
    assert np.abs(one - other).max() > 1e-4


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"resolution": -1e-3}, "encoder resolution -0.001 is negative"),
        ({"effort_sigma": np.array([0.1, -0.2])}, "effort noise -0.2 is negative"),
        ({"position_delay": -1.0}, "position delay -1 is negative"),
        ({"gain": 0.0}, "gain of zero"),
        ({"correlation": 1.0}, "not between 0 and 1"),
        ({"dropped": 1.0}, "dropped share 1 is not valid"),
        ({"stamps": "late"}, "stamps 'late' are not known"),
    ],
)
def test_impossible_sensors_are_refused(options, match: str) -> None:
    with pytest.raises(InputError, match=match):
        Sensing(**options)


def test_a_clock_that_cannot_keep_order_is_refused() -> None:
    # Three deviations must stay within half a period, or samples would have to be moved back.
    with pytest.raises(InputError, match="is too large for samples every"):
        recorded(sine_course(), Sensing(jitter=2e-4), np.random.default_rng(0))
    with pytest.raises(InputError, match="samples remain, too few"):
        recorded(sine_course(), Sensing(dropped=0.999), np.random.default_rng(0))


def test_a_delay_longer_than_the_log_is_refused() -> None:
    with pytest.raises(InputError, match="effort delay of 3 s is longer than the log of 2 s"):
        recorded(sine_course(), Sensing(effort_delay=3.0), np.random.default_rng(0))


# Friction beyond the model


def friction_of(**law: float) -> ExtraFriction:
    return ExtraFriction(robot_of("scara"), {robot_of("scara").coordinates[0]: FrictionLaw(**law)})


def test_bristles_slide_on_the_stribeck_curve() -> None:
    curve = {"coulomb": 1.0, "breakaway": 1.5, "speed": 0.1, "viscous": 0.3}
    h, s = 1e-3, 0.05
    steady = np.full((2000, 1), s)
    bristles = friction_of(**curve, stiffness=1e4, damping=20.0)
    expected = 1.0 + 0.5 * np.exp(-((s / 0.1) ** 2)) + 0.3 * s
    # exp(-stiffness s t / g) after 2 s is zero in any digits.
    assert abs(bristles.along(steady, h)[-1, 0] - expected) < 1e-12
    assert abs(friction_of(**curve).along(steady, h)[-1, 0] - expected) < 1e-12


def test_bristles_are_springs_before_they_slip() -> None:
    bristles = friction_of(coulomb=1.0, stiffness=1e4)
    h = 1e-4
    s = np.full((11, 1), 1e-3)  # 1e-6 rad in 1 ms, a hundredth of what they bend
    force = bristles.along(s, h)[-1, 0]
    assert abs(force - 1e4 * 1e-6) < 0.01 * 1e4 * 1e-6  # slip begins: half the bend over the full bend


def test_bristles_follow_their_equation() -> None:
    from scipy.integrate import solve_ivp

    bristles = friction_of(coulomb=1.0, breakaway=1.4, speed=0.2, stiffness=500.0, damping=3.0)
    t = np.arange(4001) * 2.5e-4
    speed = lambda x: 0.3 * np.sin(6.0 * x)  # noqa: E731
    level = lambda v: 1.0 + 0.4 * np.exp(-((v / 0.2) ** 2))  # noqa: E731
    slope = lambda x, z: speed(x) - 500.0 * np.abs(speed(x)) / level(speed(x)) * z  # noqa: E731
    z = solve_ivp(slope, (0.0, 1.0), [0.0], t_eval=t, rtol=1e-9, atol=1e-12, method="LSODA").y[0]
    expected = 500.0 * z + 3.0 * slope(t, z)
    # Second order in the step: (rate h)^2 / 12 with rates up to 1e2 a second.
    assert np.abs(bristles.along(speed(t)[:, None], t[1])[:, 0] - expected).max() < 1e-3


def test_engines_feel_the_same_bristles() -> None:
    robot = robot_of("fivebar")
    law = FrictionLaw(coulomb=0.3, breakaway=0.5, speed=0.2, stiffness=200.0, damping=0.5)
    plant = PlantSettings(step=2e-3, friction={"motor*": law})
    truth = Truth(values={"Fs_*": 0.0})
    runs, options = {}, {**SHORT, "duration": 0.3}
    for engine in ("inverse", "dynid"):
        settings = Simulation(engine, truth=truth, plant=plant, beliefs="truth", **options)
        runs[engine] = simulate(robot, settings).course
    # The controller does not foresee bristles, so the robot strays by 1e-3 and the efforts with it.
    size = np.abs(runs["inverse"].tau).max()
    assert np.abs(runs["dynid"].tau - runs["inverse"].tau).max() < 0.05 * size
    bare = simulate(robot, Simulation("inverse", truth=truth, **options)).course
    assert np.abs(runs["inverse"].tau - bare.tau).max() > 0.2


# Engines


@pytest.mark.parametrize("name", ["scara", "fivebar", "dualv"])
def test_engines_agree(name: str) -> None:
    pytest.importorskip("mujoco")
    robot = robot_of(name)
    tension = default_simulation(robot).moving.tension
    courses = {}
    for engine, step in (("inverse", 1.0), ("dynid", 5e-4), ("mujoco", 5e-4)):
        plant = PlantSettings(step=step, tension=tension, controller=IDEAL)
        # Dry friction is rounded off at reversals where motion is integrated.
        truth = Truth(values={"Fs_*": 0.0})
        settings = Simulation(engine, truth=truth, plant=plant, beliefs="truth", **SHORT)
        courses[engine] = simulate(robot, settings).course
    exact = courses["inverse"]
    for engine in ("dynid", "mujoco"):
        course = courses[engine]
        # Error of Runge-Kutta with the controller's gains behind it; MuJoCo's loops are springs.
        bound = 1e-6 if engine == "dynid" else 1e-4
        assert np.abs(course.q - exact.q).max() < bound
        assert np.abs(course.tau - exact.tau).max() < bound * np.abs(exact.tau).max()


@pytest.mark.parametrize("kind", ["feedforward", "computed_torque", "pd"])
def test_a_controller_that_knows_less_strays(kind: str) -> None:
    robot = robot_of("ur5")
    away, drift = {}, {}
    for beliefs in ("truth", "prior"):
        settings = Simulation(
            "dynid",
            rate=40.0,
            duration=0.3,
            beliefs=beliefs,
            motion=MotionChoice(frequency=0.5, draws=1),
            plant=PlantSettings(step=2.5e-3, controller=ControllerSettings(kind, feedback="truth")),
            truth=Truth(values={"M_*": 4.0}),
        )
        found = simulate(robot, settings)
        away[beliefs] = np.abs(found.course.q - found.course.q_ref).max()
        drift[beliefs] = found.run.energy_drift
    # Runge-Kutta with steps of 2.5 ms; a step is divided where a joint comes to rest.
    assert max(drift.values()) < 1e-5
    if kind == "pd":  # believes in nothing
        assert away["truth"] == away["prior"] > 1e-3
    else:
        # The controller smooths the dry friction by which the robot sticks at the start: half a mrad.
        assert 10.0 * away["truth"] < away["prior"]
        assert away["truth"] < 1e-3


def test_payloads_come_and_go() -> None:
    robot = robot_of("dualv")
    options = {**SHORT, "plant": PlantSettings(step=1e-3)}
    changes = ((0.03, ("payload",)), (0.07, ()))
    bare = simulate(robot, Simulation(**options)).course.tau
    loaded = simulate(robot, Simulation(payloads=("payload",), **options)).course.tau
    both = simulate(robot, Simulation(changes=changes, **options)).course.tau
    np.testing.assert_array_equal(both[:3], bare[:3])
    np.testing.assert_array_equal(both[3:7], loaded[3:7])
    np.testing.assert_array_equal(both[7:], bare[7:])
    moved = simulate(robot, Simulation("dynid", changes=changes, beliefs="truth", **options))
    assert moved.run.energy_drift < 1e-5  # what the payload brings counts as work
    assert np.abs(moved.course.q - moved.course.q_ref).max() > 1e-4  # the controller did not know


def test_seeds_repeat_and_differ() -> None:
    robot = robot_of("scara")
    settings = Simulation(sensing=Sensing(effort_sigma=0.1), **SHORT)
    one, again, other = (simulate(robot, replace(settings, seed=seed)).recording().tau for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.1


# Motions of files


def test_a_trajectory_file_is_followed(tmp_path: Path) -> None:
    robot = robot_of("scara")
    t = np.arange(201) / 100.0
    q = 0.05 * np.sin(t[:, None] * [1.0, 2.0, 1.5, 2.5]) ** 3 + 0.1
    for name in ("m.csv", "m.yaml", "m.ros2.yaml"):
        file = write_trajectory(tmp_path / name, robot.measured_positions, t, q)
        motion = file_motion(robot, str(file))
        np.testing.assert_allclose(motion.q(t), q, atol=1e-9)
    found = simulate(robot, Simulation(motion=MotionChoice(str(file)), rate=50.0))
    np.testing.assert_allclose(found.course.q, q[::2], atol=1e-9)
    with pytest.raises(InputError, match="longer than the motion of 2 s"):
        simulate(robot, Simulation(motion=MotionChoice(str(file)), duration=3.0))


def test_a_recorded_log_is_followed_smoothly(tmp_path: Path) -> None:
    robot = robot_of("scara")
    settings = Simulation(
        rate=500.0,
        motion=MotionChoice(frequency=0.5, draws=1),
        sensing=Sensing(resolution=1e-4, effort_sigma=0.1),
    )
    first = simulate(robot, settings)
    write_simulated(first, tmp_path / "run.csv")
    again = simulate(robot, Simulation(rate=500.0, motion=MotionChoice(str(tmp_path / "run.csv"))))
    # The low-pass cuts the edges, and leaves what encoder steps of 1e-4 leave of an acceleration.
    n = len(again.course.t)
    best = min(
        np.abs(again.course.ddq - first.course.ddq[k : k + n]).max() for k in range(len(first.course.t) - n)
    )
    assert best < 0.2 * np.abs(first.course.ddq).max()


def test_motions_outside_limits_and_loops_are_refused(tmp_path: Path) -> None:
    robot = robot_of("scara")
    t = np.arange(101) / 50.0
    far = np.zeros((101, 4))
    far[:, 0] = 40.0 * np.sin(t)
    name = robot.measured_positions[0]
    file = write_trajectory(tmp_path / "far.csv", robot.measured_positions, t, far)
    with pytest.raises(InputError, match=f"q of '{name}' is 40 at"):
        file_motion(robot, str(file))
    torn = np.zeros((101, 4))
    torn[:, 0] = 0.5 * np.sin(t)  # one of four motors alone
    with pytest.raises(InputError, match="violates the loop closure"):
        simulate(robot_of("dualv"), Simulation(rate=50.0), motion=SampledMotion(t, torn))
    short = write_trajectory(tmp_path / "short.yaml", ["axis_1"], t, far[:, :1])
    with pytest.raises(InputError, match="the trajectory has no joint"):
        file_motion(robot, str(short))


def test_a_motion_led_by_the_pose_of_a_body_is_that_of_the_measured_joints() -> None:
    """A motion planned along a pose has the coordinates of the guiding chain too; the robot has none."""
    robot = robot_of("stewart")
    led, names = guided(robot, "platform")
    motion = random_motion(led, 1, frequency=0.3, draws=1, joints=names)
    course = simulate(robot, {"rate": 50.0, "duration": 1.0}, motion).course
    assert np.array_equal(course.q, motion.q(course.t))
    # The same path through its samples, a spline; at rest, in the first one, friction has no sign.
    t = np.arange(301) / 100.0
    same = simulate(robot, {"rate": 50.0, "duration": 1.0}, SampledMotion(t, motion.q(t))).course
    np.testing.assert_allclose(course.tau[1:], same.tau[1:], atol=1e-4 * np.abs(course.tau).max())


# Instability


def test_gains_too_high_are_refused() -> None:
    robot = robot_of("scara")
    wild = PlantSettings(step=1e-3, controller=ControllerSettings(bandwidth=2000.0))
    with pytest.raises(InputError, match="controller gains too high: a bandwidth of 2000 Hz"):
        simulate(robot, Simulation("dynid", plant=wild, beliefs="truth", **SHORT))


def test_a_model_that_is_thirty_times_too_heavy_is_as_unstable_as_its_gains() -> None:
    heavy = PlantSettings(step=1e-3, controller=ControllerSettings("computed_torque", 50.0))
    robot = robot_of("ur5")
    light = Truth("prior", {name: x / 30.0 for name, x in true_values(robot, Truth("prior"))[0].items()})
    with pytest.raises(InputError, match="the simulation is unstable: at"):
        simulate(robot, Simulation("dynid", plant=heavy, truth=light, **SHORT))


def test_a_controller_that_oscillates_near_its_reference_is_reported() -> None:
    """Efforts of 94 N m where the motion needs 0.1: tracking errors stay within the range of the motion."""
    robot = robot_of("ur5")
    slow = ControllerSettings(bandwidth=10.0, rate=250.0)
    settings = {"rate": 500.0, "duration": 0.8, "plant": PlantSettings(step=1e-3, controller=slow)}
    light = Truth("prior", {name: x / 30.0 for name, x in true_values(robot, Truth("prior"))[0].items()})
    [wild] = [
        one
        for one in simulate(robot, Simulation("dynid", truth=light, **settings)).notices
        if one.code == "controller-efforts"
    ]
    assert "the motion needs" in wild.text
    calm = simulate(robot, Simulation("dynid", **settings)).notices
    assert not [one for one in calm if one.code == "controller-efforts"]


# Truth


def test_truth_comes_from_where_it_is_asked(tmp_path: Path) -> None:
    robot = robot_of("ur5")
    demo, _ = true_values(robot, Truth())
    prior, told = true_values(robot, Truth("prior"))
    assert demo["Fv_" + robot.coordinates[0]] > 0.0
    assert prior["Fv_" + robot.coordinates[0]] == 0.0
    assert told[0].code == "no-drive-values"
    file = tmp_path / "mine.yaml"
    file.write_text(
        "".join(
            f"{name}: {value!r}\n" for name, value in (demo | {"Fv_" + robot.coordinates[0]: 7.0}).items()
        )
    )
    mine, _ = true_values(robot, Truth(str(file), {"Fs_*": 0.25}))
    assert mine["Fv_" + robot.coordinates[0]] == 7.0
    assert mine["Fs_" + robot.coordinates[1]] == 0.25
    with pytest.raises(InputError, match="no parameter 'Fz_'"):
        true_values(robot, Truth(values={"Fz_": 1.0}))
    bare = replace(robot_of("scara"), file=None)
    with pytest.raises(InputError, match="no true values for 13 inertial parameters"):
        true_values(bare, Truth())


# Settings and files


def test_settings_are_read(tmp_path: Path) -> None:
    robot = robot_of("dualv")
    file = tmp_path / "simulation.yaml"
    file.write_text(
        "schema: dynid.simulation/1\n"
        "engine: dynid\n"
        "rate: 500\n"
        "seed: 4\n"
        "motion: {kind: points, points: 3, dwell: 0.1}\n"
        "parameters: {M_platform: 2.5}\n"
        "payload: payload\n"
        "changes: [{at: 1.5, payload: none}]\n"
        "tension: 3\n"
        "friction: {'motor*': {coulomb: 0.2, breakaway: 0.4, stiffness: 1000}}\n"
        "controller: {kind: computed_torque, bandwidth: 5, model: truth}\n"
        "encoder: {resolution: 2*pi/2^17, sigma: 1.0e-5, delay: 0.002}\n"
        "effort: {sigma: 0.1, correlation: 0.9, gain: {motor1: 1.1, motor2: 1, motor3: 1, motor4: 0.9}}\n"
        "clock: {jitter: 1.0e-5, stamps: nominal, dropped: 0.01}\n"
        "log: {velocity: true, reference: true}\n"
    )
    found = read_simulation(file, robot)
    assert (found.engine, found.rate, found.seed, found.beliefs) == ("dynid", 500.0, 4, "truth")
    assert found.motion.kind == "points"
    assert found.duration is None
    assert found.truth.values == {"M_platform": 2.5}
    assert found.payloads == ("payload",)
    assert found.changes == ((1.5, ()),)
    assert found.moving.tension == 3.0
    assert found.moving.step == 1e-3
    assert found.moving.friction["motor*"].stiffness == 1000.0
    assert found.moving.controller == ControllerSettings("computed_torque", 5.0)
    assert found.sensing.resolution == pytest.approx(2 * np.pi / 2**17)
    assert found.sensing.position_delay == 0.002
    np.testing.assert_array_equal(found.sensing.gain, [1.1, 1.0, 1.0, 0.9])
    assert found.sensing.stamps == "nominal"
    assert found.sensing.velocity
    flagged = with_flags(found, engine="mujoco", seed=9, motion="random", payloads=None)
    assert (flagged.engine, flagged.seed, flagged.payloads) == ("mujoco", 9, ("payload",))
    assert flagged.moving.step == 1e-4


@pytest.mark.parametrize(
    "text", ["effort: {sigma: [0.1, 0.2, 0.1, 2*0.2]}\n", "effort: [0.1, 0.2, 0.1, 0.4]\n"]
)
def test_one_value_per_motor_may_be_a_list(tmp_path: Path, text: str) -> None:
    file = tmp_path / "simulation.yaml"
    file.write_text(text)
    np.testing.assert_allclose(
        read_simulation(file, robot_of("dualv")).sensing.effort_sigma, [0.1, 0.2, 0.1, 0.4]
    )


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("effort: {sigma: [0.1, 0.2]}\n", "expected 4 entries, found 2"),
        ("engin: dynid\n", "unknown key 'engin'; did you mean 'engine'"),
        ("engine: bullet\n", "'bullet' is not known"),
        ("effort: -0.1\n", "-0.1 is negative"),
        ("effort: {sigma: 0.1, color: 0.9}\n", "unknown key 'color'"),
        ("encoder: {resolution: 1e-5, noise: 1}\n", "unknown key 'noise'"),
        ("clock: {dropped: 1.5}\n", "dropped share 1.5 is not valid"),
        ("rate: 0\n", "0 is not positive"),
        ("payload: payloud\n", "'payloud' is not known; did you mean 'payload'"),
        ("changes: [{at: 2, payload: payload}, {at: 1, payload: none}]\n", "are not in order"),
        ("friction: {motor1: {coulomb: 1, breakaway: 0.5}}\n", "breakaway 0.5 is less than coulomb 1"),
        ("friction: {motor1: {colomb: 1}}\n", "unknown key 'colomb'; did you mean 'coulomb'"),
        ("controller: {bandwidth: -1}\n", "-1 is not positive"),
        ("controller: {feedback: eyes}\n", "'eyes' is not known"),
        ("friction: {motor1: {coulomb: 1, damping: 3}}\n", "is given without stiffness"),
        ("schema: dynid.simulaton/1\n", "did you mean"),
    ],
)
def test_bad_settings_are_refused_with_their_place(tmp_path: Path, text: str, match: str) -> None:
    file = tmp_path / "simulation.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=match) as caught:
        read_simulation(file, robot_of("dualv"))
    assert "line 1" in str(caught.value)


@pytest.mark.parametrize("engine", ["inverse", "dynid"])
def test_a_tension_that_no_robot_could_have_is_refused(engine: str) -> None:
    plant = PlantSettings(step=1e-3, tension=5.0)
    with pytest.raises(InputError, match="is not redundantly actuated"):
        simulate(robot_of("scara"), Simulation(engine, plant=plant, beliefs="truth", **SHORT))


def test_a_tree_with_more_motors_than_joints_can_be_strained() -> None:
    robot = robot_of("scara")
    doubled = (*robot.actuators, Actuator("second", {"elbow": 2.0}))
    robot = replace(robot, actuators=doubled, drive={}, payloads={})
    truth = Truth(values=dict(true_values(robot_of("scara"), Truth())[0]))
    values = {
        name: x for name, x in truth.values.items() if name.partition("_")[0] not in ("Ia", "Fv", "Fs", "Off")
    }
    runs = [
        simulate(
            robot, Simulation(truth=Truth("prior", values), plant=PlantSettings(tension=x), **SHORT)
        ).course
        for x in (0.0, 5.0)
    ]
    strain = runs[1].tau - runs[0].tau
    assert np.abs(strain).max() > 1.0
    # Rounding: a tension moves nothing.
    np.testing.assert_allclose(strain @ robot.actuator_map, 0.0, atol=1e-12)


def test_settings_without_effect_are_reported() -> None:
    plant = PlantSettings(controller=ControllerSettings("pd"))
    told = simulate(robot_of("scara"), Simulation(plant=plant, **SHORT)).notices
    assert "no-controller" in [notice.code for notice in told]
    assert not simulate(robot_of("scara"), Simulation(**SHORT)).notices


def test_unknown_owner_of_friction_is_refused() -> None:
    plant = PlantSettings(friction={"moter1": FrictionLaw(coulomb=1.0)})
    with pytest.raises(InputError, match="no joint or motor 'moter1'; did you mean 'motor1'"):
        simulate(robot_of("dualv"), Simulation(plant=plant, **SHORT))


def test_a_log_is_written_as_a_robot_would(tmp_path: Path) -> None:
    robot = robot_of("dualv")
    sensing = Sensing(effort_sigma=0.1, dropped=0.02, jitter=1e-5, reference=True)
    found = simulate(robot, Simulation(sensing=sensing, payloads=("payload",), **{**SHORT, "duration": 1.0}))
    for name in ("run.csv", "run.parquet"):
        log, truth = write_simulated(found, tmp_path / name)
        raw = found.recording()
        read = read_log(log, robot)
        assert read.position_names == robot.measured_positions
        assert {notice.code for notice in read.notices} & {
            "gap",
            "time-missing",
            "jitter",
            "resampled",
        } or len(read.t) >= len(raw.t)
    document = json.loads(truth.read_text())
    assert document["schema"] == "dynid.truth/1"
    assert document["parameters"]["M_payload"] == 5.37
    assert document["payloads"] == [{"from": 0.0, "payloads": ["payload"]}]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.csv", "run.parquet", "run.truth.json"]
    values, _ = true_values(robot, Truth(str(truth)))
    assert values == found.values


def test_command(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    done = runner.invoke(main, ["simulate", "scara", "--duration", "0.5", "--rate", "100", "--seed", "3"])
    assert done.exit_code == 0, done.output
    assert "51 samples" in done.output
    assert "scara.csv" in done.output
    assert (tmp_path / "scara.truth.json").is_file()
    refused = {
        "--engine bullet": "engine 'bullet' is not known",
        "--payload box": "has no payload 'box'",
        "--out log.txt": "not in '.txt'",
        "--out nowhere/log.csv": "its folder does not exist",
        "--motion missing.csv": "no such file",
        "--duration -1": "a duration of -1 is not valid",
    }
    for flags, message in refused.items():
        done = runner.invoke(main, ["simulate", "scara", *flags.split()])
        assert done.exit_code == 2, done.output
        assert message in " ".join(done.output.split())


def test_a_robot_on_locked_cables_is_let_go(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    done = runner.invoke(main, ["simulate", "cable4", "--duration", "0.5", "--rate", "50", "--seed", "1"])
    assert done.exit_code == 0, done.output
    assert "random releases" in done.output
    robot = robot_of("cable4")
    log = read_log(tmp_path / "cable4.csv", robot, need_effort=False)
    assert len(log.segments) == 12
    document = json.loads((tmp_path / "cable4.truth.json").read_text())
    assert document["parameters"]["M_platform"] == 10.0
    (tmp_path / "path.csv").write_text("t,q_1\n0,0\n1,1\n")
    done = runner.invoke(main, ["simulate", "cable4", "--motion", "path.csv"])
    assert done.exit_code == 2
    # Releases of free motions have the whole pose; a path of one joint is none.
    assert "no column for the position of 'pose_y'" in " ".join(done.output.split())


# Platforms on more cables than freedoms


@pytest.mark.parametrize("engine", ["inverse", "dynid"])
@pytest.mark.parametrize("kind", ["fourier", "points"])
def test_a_platform_on_eight_cables_is_led_by_its_pose(engine: str, kind: str, tmp_path: Path) -> None:
    """Sensors of 7 positions and 8 tensions, each with its own figures; identification finds the truth."""
    robot = robot_of("cable8")
    own = default_simulation(robot)
    motion = replace(own.motion, kind=kind, draws=1, points=6)
    sensing = Sensing(resolution=np.full(7, 1e-9), effort_sigma=np.full(8, 1e-6))
    duration = 2.5 if kind == "fourier" else None
    found = simulate(robot, replace(own, engine=engine, motion=motion, sensing=sensing, duration=duration))
    assert np.abs(found.course.q[:, :3]).max() <= 0.3
    assert found.course.tau.min() > 20.0  # cables only pull
    assert found.course.tau.max() < 400.0
    assert not found.notices
    file = write_simulated(found, tmp_path / "log.csv")[0]
    estimate = identify_logs(robot, (read_log(str(file), robot),), truth=found.values)
    assert len(estimate.parameters) == 10
    for one in estimate.parameters:
        # Differences of positions across the jumps of the jerk at points, and across the steps of a
        # controller: about 1e-5 of the mass, 1e-5 kg m^2 beside inertias of 0.1.
        assert one.value == pytest.approx(estimate.truth[one.name], rel=5e-5, abs=2e-5)


def test_what_eight_cables_are_excited_by_is_simulated(tmp_path: Path, monkeypatch) -> None:
    """From the command line: the file of `dynid excite`, a log, and the truth again."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    for words in (
        "excite cable8 --starts 1 --hops 0 --period 4 --rate 100 --jobs 1 --out found",
        "simulate cable8 --motion found/trajectory.csv",
        "identify --robot cable8 --log cable8.csv --out result",
    ):
        done = runner.invoke(main, words.split())
        assert done.exit_code == 0, done.output
    truth = json.loads((tmp_path / "cable8.truth.json").read_text())["parameters"]
    found = json.loads((tmp_path / "result" / "result.json").read_text())["parameters"]
    assert len(found) == 10
    for one in found:
        # Student's t with about ten degrees of freedom: one of ten lies beyond in one seed of a hundred.
        assert abs(one["value"] - truth[one["name"]]) < 4.5 * one["sigma"]


def test_cables_that_would_push_are_reported() -> None:
    """Without a range there is no middle to hold; without a tension the platform hangs on pushing cables."""
    robot = robot_of("cable8")
    limits = {name: own for name, own in robot.limits.items() if name != "cables"}
    settings = replace(default_simulation(robot), duration=0.5)
    assert not simulate(robot, replace(settings, plant=None)).notices  # a range is enough
    found = simulate(replace(robot, limits=limits), replace(settings, plant=None))
    assert [one.code for one in found.notices] == ["loose-cables"]
    assert "N, range 0 to inf N" in found.notices[0].text


@pytest.mark.parametrize("engine", ["inverse", "dynid"])
def test_motors_that_are_too_weak_for_a_motion_are_named(engine: str) -> None:
    """Without a word, a log of a motion that the robot cannot follow looks like any other."""
    robot = robot_of("scara")
    settings = replace(default_simulation(robot), engine=engine, duration=0.5)
    peak = float(np.abs(simulate(robot, settings).course.tau[:, 1]).max())
    motor = robot.actuators[1].name
    weak = {**robot.limits, motor: {**robot.limits.get(motor, {}), "tau": 0.5 * peak}}
    [found] = [one for one in simulate(replace(robot, limits=weak), settings).notices if "beyond" in one.code]
    assert found.code == "efforts-beyond-limits"
    assert f"'{motor}'" in found.text
    assert f"limit {0.5 * peak:.3g} N m" in found.text.replace("limit -", "limit ")
    strong = {**robot.limits, motor: {**robot.limits.get(motor, {}), "tau": 2.0 * peak}}
    found = simulate(replace(robot, limits=strong), settings)
    assert not [one for one in found.notices if "beyond" in one.code]
