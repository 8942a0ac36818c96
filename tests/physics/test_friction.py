"""Root, load and Stribeck friction: columns, powers and energies by independent evaluation; recovery."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid import load_robot
from dynid.common.errors import InputError
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment, FilterSettings
from dynid.fit import fit_task
from dynid.info import describe
from dynid.kinematics.tension import motor_jacobian
from dynid.linear_fit import linear_fit
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS
from dynid.mechanism.mechanism import Actuator
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.pipeline import identify_logs, validate_result
from dynid.problem import prepare
from dynid.regressor.regressor import tree_matrix
from dynid.simulation.prescribed import inverse_efforts, parameter_vector, simulate_log
from dynid.statistics.assemble import estimate_parameters
from dynid.statistics.uncertainty import UncertaintySettings
from dynid.unknown import Task
from dynid.unknowns.friction import search_speeds
from tests.built_in import EXACT, truth_of
from tests.oracle import pinocchio_regressor

TERMS = ("Fv", "Fs", "Fr", "Fl", "Fk")
SPEED = 0.3
PENDULUM = """
name: pendulum
gravity: [0, -9.81, 0]
joints:
  - {name: a, kind: revolute, parent: base, child: upper, mdh: {}}
  - {name: b, kind: revolute, parent: upper, child: lower, mdh: {d: 0.5}}
drive: {"*": [Fv, Fs, Fr, Fl]}
limits: {a: {q: 1, dq: 3, ddq: 20}, b: {q: 1, dq: 3, ddq: 20}}
"""


def with_friction(name: str, terms=TERMS):
    """A built-in robot with these drive terms at every motor, and no payload."""
    robot = variant(load_robot(name))
    owners = [actuator.name for actuator in robot.actuators]
    return replace(robot, drive=dict.fromkeys(owners, terms), stribeck=dict.fromkeys(owners, SPEED))


def geared(name: str):
    """The same with motors behind gears, the last one on two joints; friction at the motors."""
    robot = variant(load_robot(name))
    joints = [actuator.name for actuator in robot.actuators]
    motors = [Actuator(f"m{i}", {joint: 3.0 + i}) for i, joint in enumerate(joints[:-1])]
    motors.append(Actuator("mw", {joints[-2]: 2.0, joints[-1]: 5.0}))
    owners = [motor.name for motor in motors]
    return replace(
        robot,
        actuators=tuple(motors),
        drive=dict.fromkeys(owners, TERMS),
        stribeck=dict.fromkeys(owners, SPEED),
        limits={},
    )


def states(robot, n: int = 40):
    rng = np.random.default_rng(1)
    return rng.normal(size=(3, n, len(robot.coordinates)))


@pytest.mark.parametrize("make", [with_friction, geared])
def test_columns_equal_their_formulas(make) -> None:
    """Each column, projected on the joints by the motor's ratio, from speeds and loads alone."""
    robot = make("scara")
    robot = replace(robot, drive=dict.fromkeys(robot.drive, DRIVE_SYMBOLS))
    q, dq, ddq = states(robot)
    dq[0] = 0.0  # at rest no dry friction has a sign
    C = robot.actuator_map
    load = np.abs(np.random.default_rng(2).normal(size=(len(q), sum(C.shape))))
    W = tree_matrix(robot, q, dq, ddq, load=load)
    names = [parameter.name for parameter in parameter_table(robot)]
    own = [*robot.coordinates, *(actuator.name for actuator in robot.actuators)]
    for motor, ratios in zip(robot.actuators, C, strict=True):
        s = dq @ ratios
        expected = {
            "Ia": ddq @ ratios,
            "Fv": s,
            "Fs": np.sign(s),
            "Fv+": np.where(s > 0, s, 0.0),
            "Fv-": np.where(s < 0, s, 0.0),
            "Fs+": np.where(s > 0, 1.0, 0.0),
            "Fs-": np.where(s < 0, -1.0, 0.0),
            "Off": np.ones_like(s),
            "Fr": np.sign(s) * np.sqrt(np.abs(s)),
            "Fl": np.sign(s) * load[:, own.index(motor.name)],
            "Fk": np.sign(s) * np.exp(-(s**2) / SPEED**2),
        }
        assert set(expected) == set(DRIVE_SYMBOLS)
        for symbol, column in expected.items():
            found = W[:, :, names.index(f"{symbol}_{motor.name}")]
            # The same operations in double precision.
            np.testing.assert_allclose(found, column[:, None] * ratios, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("make", [with_friction, geared])
def test_simulated_loads_are_the_rigid_body_efforts_of_pinocchio(make) -> None:
    """tau - friction = rigid body, with load friction from the rigid-body efforts at the motors."""
    robot = make("scara")
    rng = np.random.default_rng(3)
    truth = {
        p.name: 0.08 if p.symbol == "Fl" else float(rng.uniform(0.2, 0.9)) for p in parameter_table(robot)
    }
    q, dq, ddq = states(robot)
    tau = inverse_efforts(robot, truth, q, dq, ddq)
    inertial = np.array([truth[p.name] for p in parameter_table(robot) if p.kind == "inertial"])
    joints = pinocchio_regressor(robot, q, dq, ddq) @ inertial
    C = robot.actuator_map
    rigid = joints @ np.linalg.inv(C)
    s = dq @ C.T
    of = {t: np.array([truth[f"{t}_{motor.name}"] for motor in robot.actuators]) for t in TERMS}
    friction = (
        of["Fv"] * s
        + of["Fs"] * np.sign(s)
        + of["Fr"] * np.sign(s) * np.sqrt(np.abs(s))
        + of["Fl"] * np.sign(s) * np.abs(rigid)
        + of["Fk"] * np.sign(s) * np.exp(-((s / SPEED) ** 2))
    )
    # Two implementations of rigid-body dynamics; efforts of some tens of N m.
    np.testing.assert_allclose(tau, rigid + friction, atol=1e-10 * np.abs(tau).max())


@pytest.mark.parametrize("tension", [0.0, 3.0])
def test_tension_of_a_redundant_robot_loads_its_motors(tension: float) -> None:
    """J^T (tau - friction) is what the motion needs; the load is the least effort plus the tension."""
    robot = variant(load_robot("dualv"))
    known = truth_of("dualv")
    motors = [actuator.name for actuator in robot.actuators]
    plain = replace(robot, drive={})
    loaded = replace(robot, drive=dict.fromkeys(motors, ("Fl",)))
    truth = {p.name: known[p.name] for p in parameter_table(plain)}
    motion = random_motion(robot, seed=3, draws=2)
    log, rigid = (
        simulate_log(
            one,
            {**truth, **{p.name: 0.1 for p in parameter_table(one) if p.symbol == "Fl"}},
            motion,
            rate=100.0,
            duration=1.0,
            velocity=True,
            tension=tension,
        )
        for one in (loaded, plain)
    )
    t = log.t
    J = motor_jacobian(robot, motion.states(t).N)
    left = log.tau - 0.1 * np.sign(motion.measured(motion.states(t))[1]) * np.abs(rigid.tau)
    need = np.einsum("nad,na->nd", J, rigid.tau)
    # Rounding of closed poses (1e-13) in efforts of some N m.
    np.testing.assert_allclose(np.einsum("nad,na->nd", J, left), need, atol=1e-9 * np.abs(need).max())


def test_power_and_energy_of_the_new_terms_agree() -> None:
    """power = velocity times inverse rows; energy = its integral over every interval."""
    robot = with_friction("scara")
    rng = np.random.default_rng(0)
    chi = parameter_vector(robot, rng.uniform(0.5, 1.5, len(parameter_table(robot))))
    motion = random_motion(robot, seed=3, draws=2)
    log = simulate_log(robot, chi, motion, rate=1000.0, duration=2.0, velocity=True)

    def rows(model: str, start: int, stop: int):
        problem = prepare(robot, [log], Experiment(robot=robot, model=model, **EXACT)).with_load_parameters(
            chi
        )
        _, packed, _ = next(iter(problem.sources[0].rows(start, stop, stop - start)))
        W = problem.sources[0].layout.dense(packed, len(chi))
        return W, packed[problem.sources[0].layout.start[1:] - 1].T

    inverse, tau = rows("inverse", 300, 701)
    power, _ = rows("power", 300, 701)
    energy, _ = rows("energy", 300, 700)
    dq = log.dq[300:701]
    # The equations hold with the true parameters: differences of rounding.
    np.testing.assert_allclose(inverse @ chi, tau, atol=1e-8 * np.abs(tau).max())
    columns = [i for i, p in enumerate(parameter_table(robot)) if p.symbol in ("Fr", "Fl", "Fk")]
    expected = np.einsum("nk,nkp->np", dq, inverse)[:, columns]
    size = np.abs(expected).max(axis=0)
    np.testing.assert_allclose(power[:, 0, columns] / size, expected / size, atol=1e-12)
    total, trapezoid = energy[:, 0, columns].sum(axis=0), np.trapezoid(power[:, 0, columns], axis=0)
    # Both rules miss the kinks of |s| at reversals and the cusp of the load by O(h^2): 1e-3 of the sum.
    np.testing.assert_allclose(total, trapezoid, rtol=1e-3)


def test_base_parameters_gain_exactly_the_new_terms() -> None:
    """Random loads make a column of their own: three more base parameters a motor."""
    plain, rich = with_friction("scara", ("Fv", "Fs")), with_friction("scara")
    assert describe(rich).n_base == describe(plain).n_base + 3 * len(plain.actuators)
    unit = {one.name: one.unit for one in describe(rich).base}
    assert unit["Fl_quill"] == "1"
    assert (unit["Fr_shoulder"], unit["Fr_quill"]) == ("N m (s/rad)^0.5", "N (s/m)^0.5")


def demo_truth(robot, name: str, **extra: float) -> dict[str, float]:
    truth = truth_of(name)
    return {p.name: extra.get(p.symbol, truth.get(p.name, 0.0)) for p in parameter_table(robot)}


def recorded(robot, truth, seed: int, sigma: float = 0.05):
    motion = random_motion(robot, seed=seed, draws=3)
    return simulate_log(
        robot, truth, motion, rate=500.0, duration=8.0, torque_sigma=sigma, seed=seed, name=f"run {seed}"
    )


def test_load_and_root_friction_are_recovered_and_predict_other_logs() -> None:
    robot = with_friction("scara", ("Fv", "Fs", "Fr", "Fl"))
    truth = demo_truth(robot, "scara", Fr=0.8, Fl=0.07)
    fit, other = recorded(robot, truth, 1), recorded(robot, truth, 2)
    estimate = identify_logs(robot, [fit], [other], Experiment(robot=robot))
    for one in estimate.parameters:
        if one.name.startswith(("Fr_", "Fl_")):
            # Four deviations: a dozen parameters, t-distributed.
            assert abs(one.value - truth[one.name]) < 4 * one.sigma, one
            assert one.sigma < 0.5 * abs(truth[one.name]), one
    assert "refits" in estimate.choices["loads of friction Fl"]
    # White noise of 0.05 over efforts of some N m is all that is left.
    (checked,) = estimate.validation
    plain = replace(robot, drive=dict.fromkeys(robot.drive, ("Fv", "Fs")))
    without = identify_logs(plain, [fit], [other], Experiment(robot=plain)).validation[0]
    assert checked.residual_percent < 0.5 * without.residual_percent


def pendulum(folder, terms):
    """A double pendulum with these drive terms, its true parameters, and a log without noise."""
    file = folder / "pendulum.yaml"
    file.write_text(PENDULUM)
    robot = load_robot(file)
    robot = replace(robot, drive=dict.fromkeys(robot.drive, terms))
    size = {"ZZ": 0.3, "MX": 1.0, "M": 3.0, "Fv": 0.5, "Fs": 0.4, "Fr": 0.8, "Fl": 0.07, "Fk": 1.5}
    truth = {p.name: size.get(p.symbol, 0.0) for p in parameter_table(robot)}
    motion = random_motion(robot, seed=1, draws=3)
    known = replace(robot, stribeck={"a": 0.3, "b": 0.5})
    return robot, truth, simulate_log(known, truth, motion, rate=100.0, duration=8.0, velocity=True)


def test_intervals_of_load_friction_cover_the_truth(tmp_path) -> None:
    """95 % intervals of Fl and Fr of a double pendulum, loads estimated, over 30 noisy logs."""
    robot, truth, clean = pendulum(tmp_path, ("Fv", "Fs", "Fr", "Fl"))
    experiment = Experiment(robot=robot, filter=FilterSettings(cutoff=20.0, decimate=2))
    inside = []
    for seed in range(30):
        noise = 0.3 * np.random.default_rng(seed).normal(size=clean.tau.shape)
        solved = fit_task(Task(robot, (replace(clean, tau=clean.tau + noise),), experiment))
        for one in estimate_parameters(solved.data, solved.solution).parameters:
            if one.name.startswith(("Fl_", "Fr_")):
                inside.append(one.ci95[0] <= truth[one.name] <= one.ci95[1])
    # 30 draws of four parameters, those of a joint correlated: 0.95 less 3 sqrt(0.95 0.05 / 60).
    assert np.mean(inside) >= 0.866


def test_stribeck_speeds_are_found_with_their_intervals() -> None:
    robot = replace(with_friction("scara", ("Fv", "Fs", "Fk")), stribeck={})
    speeds = {"shoulder": 0.4, "elbow": 0.6, "quill": 0.08, "wrist": 1.5}
    true_robot = replace(robot, stribeck=speeds)
    truth = demo_truth(true_robot, "scara", Fk=4.0)
    log = recorded(true_robot, truth, 1, sigma=0.02)
    estimate = identify_logs(robot, [log], (), Experiment(robot=robot))
    for owner, speed in speeds.items():
        words = estimate.choices[f"Stribeck speed of {owner}"]
        # Noise of 0.1 % of the friction sought: the search ends within a hundredth.
        assert float(words.split()[0]) == pytest.approx(speed, rel=0.01)
        assert estimate[f"Fk_{owner}"].value == pytest.approx(4.0, rel=0.02)
    again = identify_logs(robot, [log], (), Experiment(robot=robot))
    assert again.choices == estimate.choices
    # The speeds are part of the result: another log is predicted by them.
    other = recorded(true_robot, truth, 2, sigma=0.02)
    found = validate_result(estimate, [other], robot)[0][0]
    fresh = identify_logs(robot, [log], [other], Experiment(robot=robot)).validation[0]
    assert found.residual_percent == pytest.approx(fresh.residual_percent, rel=1e-6)


def test_intervals_beside_searched_stribeck_speeds_cover_the_truth(tmp_path) -> None:
    """Fk and Fs lean on the speeds found: what is not known of these must be in their sigma."""
    robot, truth, clean = pendulum(tmp_path, ("Fv", "Fs", "Fk"))
    filter = FilterSettings(cutoff=20.0, decimate=2)
    asked = Experiment(robot=robot, filter=filter, uncertainty=UncertaintySettings("classical"))
    sure_robot = replace(robot, stribeck={"a": 0.3, "b": 0.5})
    inside, wider = [], []
    for seed in range(20):
        noise = 0.3 * np.random.default_rng(seed).normal(size=clean.tau.shape)
        logs = [replace(clean, tau=clean.tau + noise)]
        parts = fit_task(Task(robot, tuple(logs), asked)).parts
        taken_as_known = fit_task(Task(sure_robot, tuple(logs), asked)).parts
        for one, sure in zip(parts.parameters, taken_as_known.parameters, strict=True):
            if one.name.startswith(("Fk_", "Fs_", "Fv_")):
                inside.append(one.ci95[0] <= truth[one.name] <= one.ci95[1])
                wider.append(one.sigma / sure.sigma)
    # 20 draws of six parameters, those of a joint correlated: 0.95 less 3 sqrt(0.95 0.05 / 60). The speeds
    # enter linearised, which costs a few percent (0.88 here; 0.79 with sigma as if they were known).
    assert np.mean(inside) >= 0.866
    assert np.median(wider) > 1.2  # the data of one joint tell both


def test_intervals_of_stribeck_speeds_cover_the_truth(tmp_path) -> None:
    robot, _, clean = pendulum(tmp_path, ("Fv", "Fs", "Fk"))
    plain = replace(robot, drive=dict.fromkeys(robot.drive, ("Fv", "Fs")))
    experiment = Experiment(robot=plain, filter=FilterSettings(cutoff=20.0, decimate=2))
    inside = []
    for seed in range(20):
        noise = 0.3 * np.random.default_rng(seed).normal(size=clean.tau.shape)
        log = replace(clean, tau=clean.tau + noise)
        fit = linear_fit(prepare(plain, [log], experiment), experiment)
        for one, speed in zip(search_speeds(fit, ("a", "b")).found, (0.3, 0.5), strict=True):
            inside.append(one.low <= speed <= one.high)
    # 20 draws of two speeds: 0.95 less 3 sqrt(0.95 0.05 / 40), and a little for the linearisation.
    assert np.mean(inside) >= 0.82


def test_a_joint_without_motor_has_no_load() -> None:
    robot = load_robot("dualv")
    with pytest.raises(InputError, match="no actuator acts on it"):
        replace(robot, drive={"elbow1": ("Fl",)})
    with pytest.raises(InputError, match="not positive"):
        replace(robot, stribeck={"motor1": 0.0})
