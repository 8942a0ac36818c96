"""Drive gains: maximum likelihood against brute force, coverage, robots of several kinds, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.case import read_source
from dynid.common.errors import InputError, NoResultError
from dynid.estimator import gains
from dynid.estimator.gains import GroupNoise, solve_gains
from dynid.estimator.settings import GainSettings
from dynid.estimator.wls import group_factors
from dynid.excitation.friction import ExtraFriction, FrictionLaw
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment, experiment_from, read_experiment
from dynid.fit import fit_task
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Payload
from dynid.mechanism.parameters import Parameter
from dynid.motion.settings import FilterSettings
from dynid.pipeline import identify_logs, validate_result
from dynid.projection.projection import System
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.prescribed import prescribed_course, simulate_log
from dynid.simulation.sensors import Sensing, effort_noise, recorded
from dynid.statistics.covariance import covariance_of
from dynid.statistics.uncertainty import interval95
from dynid.unknown import Task
from tests.built_in import truth_of
from tests.systems import group

CHI, GAINS = np.array([1.0, -0.5, 2.0, 0.7]), np.array([0.6, 1.5])


def rows(rng, n=240, noise=0.05):
    """Two joints that share parameters, unloaded and loaded by a known w: W, w and currents of each."""
    joints = []
    for k in range(2):
        W = rng.standard_normal((n, 4))
        W[:, 2 + k] = 0.0 if k == 0 else W[:, 2 + k]
        w = np.where(np.arange(n) < n // 2, 0.0, 1.0 + rng.standard_normal(n))
        joints.append((W, w))
    return joints, [
        (W @ CHI + w) / g + noise * rng.standard_normal(n) for (W, w), g in zip(joints, GAINS, strict=True)
    ]


def gain_system(joints, currents, blocks=24) -> System:
    names = [Parameter(f"P{i}", "P", f"link{i}", "1", "inertial") for i in range(4)]
    names += [Parameter(f"gain_m{k}", "gain", f"m{k}", "1", "gain") for k in range(2)]
    groups = []
    for k, ((W, w), i) in enumerate(zip(joints, currents, strict=True)):
        C = np.zeros((len(i), 2))
        C[:, k] = i
        groups.append(group(np.column_stack([W, -C]), -w, name=f"m{k}", blocks=blocks))
    return System(tuple(names), tuple(groups))


NOISE = [GroupNoise(np.array([1.0, 0.0])), GroupNoise(np.array([0.0, 1.0]))]


def test_the_likelihood_has_its_maximum_where_a_dense_search_finds_it() -> None:
    from scipy.optimize import minimize

    joints, currents = rows(np.random.default_rng(0), noise=0.3)
    found = solve_gains(gain_system(joints, currents), NOISE)

    def cost(theta):
        total = 0.0
        for k, ((W, w), i) in enumerate(zip(joints, currents, strict=True)):
            e = i - (W @ theta[:4] + w) / theta[4 + k]
            total += len(e) * np.log(np.mean(e**2))
        return total

    start = np.append(CHI, GAINS)
    dense = minimize(cost, start, method="BFGS", options={"gtol": 1e-7, "maxiter": 500}).x
    # BFGS stops at a gradient of 1e-7 to 1e-5: some 1e-5 of the parameters.
    assert np.allclose(found.solution.chi, dense, rtol=1e-4, atol=1e-4)


def test_exact_currents_give_exact_gains_from_any_nominal_value() -> None:
    joints, currents = rows(np.random.default_rng(1), noise=0.0)
    for wrong in (0.1, 1.0, 10.0):
        found = solve_gains(gain_system(joints, [wrong * i for i in currents]), NOISE)
        # Rounding of a system of condition ten.
        assert np.allclose(found.g * wrong, GAINS, rtol=1e-8)
        assert np.allclose(found.solution.chi[:4], CHI, rtol=1e-7)


def test_least_squares_with_the_mass_on_the_right_shrinks_the_gains_and_this_does_not() -> None:
    joints, currents = rows(np.random.default_rng(2), n=4000, noise=0.6)
    found = solve_gains(gain_system(joints, currents), NOISE)
    A = np.concatenate([one.blocks[0].W for one in gain_system(joints, currents, 1).groups])
    y = np.concatenate([one.blocks[0].Y for one in gain_system(joints, currents, 1).groups])
    plain = np.linalg.lstsq(A, y, rcond=None)[0][4:]
    assert np.all(plain < 0.93 * GAINS)
    # 4000 rows at a noise of 0.6: about 1 %, three times that is 3 %.
    assert np.allclose(found.g, GAINS, rtol=0.03)


@pytest.mark.parametrize("colour", [None, 0.8])
def test_intervals_cover_the_truth(colour) -> None:
    """150 draws, default intervals (jackknife over blocks of eight times the noise's memory)."""
    hits = []
    for seed in range(150):
        rng = np.random.default_rng([10, seed])
        joints, currents = rows(rng, n=960, noise=0.0)
        currents = [i + 0.3 * effort_noise(rng, len(i), 1, colour)[:, 0] for i in currents]
        system = gain_system(joints, currents)
        found = solve_gains(system, NOISE)
        spread = covariance_of(system, found.solution)
        ci = interval95(found.solution.chi, spread.covariance, spread.dof)[4:]
        hits.append((ci[:, 0] <= GAINS) & (ci[:, 1] >= GAINS))
    # 300 intervals: 95 % +- 1.3 %; two deviations, and what 24 blocks cost.
    assert 0.91 <= np.mean(hits) <= 0.985


def test_steps_that_overshoot_bring_no_gain_beyond_zero_or_infinity() -> None:
    joints, currents = rows(np.random.default_rng(28), n=60, noise=0.3)
    system = gain_system(joints, currents, blocks=6)
    problem = gains._Problem(system, tuple(NOISE), group_factors(system), gains._shared(system), 2)
    wanted = solve_gains(system, NOISE).g
    for factors in ((5.0, 1.0), (8.0, 0.2), (0.1, 10.0)):
        far = GAINS * factors
        start = np.append(problem._dynamics(far, np.ones(2)), far)
        found, _, status = gains._descend(problem, start)
        assert status == "converged"
        # Steps end at 1e-6 sigma, and sigma is a few percent.
        assert np.allclose(found[-2:], wanted, rtol=1e-6)


def test_the_scale_of_nothing_known_is_refused() -> None:
    joints, currents = rows(np.random.default_rng(3))
    joints = [(W, 0.0 * w) for W, w in joints]
    with pytest.raises(NoResultError, match="scale of the drive gains is not identifiable"):
        solve_gains(gain_system(joints, currents), NOISE)


def test_a_motor_that_shares_nothing_with_the_known_mass_is_named() -> None:
    rng = np.random.default_rng(4)
    joints, _ = rows(rng)
    W, w = joints[1]
    joints[1] = (np.where(np.arange(4) >= 2, W, 0.0), 0.0 * w)
    joints[0][0][:, 2:] = 0.0
    currents = [
        (W @ CHI + w) / g + 0.05 * rng.standard_normal(len(w))
        for (W, w), g in zip(joints, GAINS, strict=True)
    ]
    with pytest.raises(NoResultError, match="drive gain of m1 is not identifiable"):
        solve_gains(gain_system(joints, currents), NOISE)


def serial(noise: float, colour: float | None, seed: int = 0, seconds: float = 20.0):
    """serial6 with a weighed ballast: two unloaded and two loaded runs in wrong units of effort."""
    robot = load_robot("serial6")
    truth = truth_of("serial6")
    mass = 500.0
    known = {"M": mass, "MX": 0.05 * mass, "MY": 0.0, "MZ": 0.1 * mass}
    robot = replace(robot, payloads={"ballast": Payload("ballast", "B6", known=known)})
    truth |= {f"{s}_ballast": known.get(s, 0.0) for s in ("XY", "XZ", "YZ", *known)}
    truth |= {"XX_ballast": 10.0, "YY_ballast": 10.0, "ZZ_ballast": 5.0}
    return runs(robot, truth, ((), (), ("ballast",), ("ballast",)), noise, colour, seed, 500.0, seconds, 0.05)


def dualv(noise: float, colour: float | None, seed: int = 0):
    robot = load_robot("dualv")
    demo = read_demo(demo_file("dualv"), robot)
    payload = replace(robot.payloads["payload"], known={"M": demo.truth["M_payload"]})
    robot = replace(robot, payloads={"payload": payload})
    loads = ((), (), ("payload",), ("payload",))
    return runs(robot, demo.truth, loads, noise, colour, seed, 500.0, 3.0, 1.0, tension=6.0)


def runs(robot, truth, loads, noise, colour, seed, rate, seconds, frequency, tension=0.0):
    rng = np.random.default_rng(seed)
    gains = rng.uniform(0.6, 1.5, len(robot.actuators))
    logs = []
    for i, mounted in enumerate(loads):
        path = random_motion(robot, seed=40 * seed + i, frequency=frequency, draws=3)
        options = {"payloads": mounted, "name": f"run {i + 1}", "tension": tension}
        log = simulate_log(robot, truth, path, rate=rate, duration=seconds, **options)
        sigma = noise * np.sqrt(np.mean(log.tau**2, axis=0))
        tau = log.tau + sigma * effort_noise(rng, *log.tau.shape, colour)
        logs.append(replace(log, tau=tau / gains))
    return robot, logs, gains


def gains_of(estimate, robot):
    return [estimate[f"gain_{actuator.name}"] for actuator in robot.actuators]


def test_a_serial_arm_at_one_percent_white_noise() -> None:
    robot, logs, truth = serial(0.01, None, seconds=12.0)
    estimate = identify_logs(robot, logs[:3], logs[3:], Experiment(robot=robot, gains=GainSettings()))
    for one, value in zip(gains_of(estimate, robot), truth, strict=True):
        assert one.value == pytest.approx(value, rel=0.01)
        assert one.unit == "1"
    # Noise of 1 % is all that is left, also where the gains are applied to other logs.
    assert estimate.validation[0].effort_percent == pytest.approx(1.0, abs=0.1)
    later = validate_result(estimate, [logs[3]], robot)[0][0]
    assert later.effort_percent == pytest.approx(estimate.validation[0].effort_percent, rel=1e-6)
    assert len(estimate.covariance) == sum(p.sigma is not None for p in estimate.parameters)


def test_a_serial_arm_at_five_percent_coloured_noise() -> None:
    inside = []
    for seed in range(2):
        robot, logs, truth = serial(0.05, 0.95, seed, seconds=12.0)
        settings = GainSettings(nominal=0.5)
        estimate = identify_logs(robot, logs, (), Experiment(robot=robot, gains=settings))
        found = gains_of(estimate, robot)
        assert all(one.unit == "N m/A" for one in found)
        inside += [one.ci95[0] <= g <= one.ci95[1] for one, g in zip(found, truth, strict=True)]
    # 12 intervals of 95 %: ten or more hold the truth in 98 % of trials.
    assert sum(inside) >= 10


@pytest.mark.parametrize("model", ["power", "inverse"])
def test_a_redundant_robot_tells_four_gains_from_rows_that_feel_all_motors(model: str) -> None:
    robot, logs, truth = dualv(0.01, None)
    options = {"model": model, "filter": FilterSettings(cutoff=60.0), "gains": GainSettings()}
    estimate = identify_logs(robot, logs, (), Experiment(robot=robot, **options))
    for one, value in zip(gains_of(estimate, robot), truth, strict=True):
        assert one.value == pytest.approx(value, rel=0.01)


def test_a_common_gain_and_gains_that_are_known() -> None:
    robot, logs, truth = serial(0.01, None)
    some = tuple(actuator.name for actuator in robot.actuators[:2])
    # Wrong units on the first two only: the others are the reference, and no mass need be known.
    fixed = np.where(np.arange(6) < 2, 1.0, truth)
    scaled = [replace(log, tau=log.tau * fixed) for log in logs[:2]]
    bare = replace(robot, payloads={})
    settings = GainSettings(unknown=some)
    estimate = identify_logs(bare, scaled, (), Experiment(robot=bare, gains=settings))
    for name, value in zip(some, truth, strict=False):
        assert estimate[f"gain_{name}"].value == pytest.approx(value, rel=0.01)
    even = [replace(log, tau=log.tau * truth / 0.7) for log in logs]
    common = GainSettings(common=True)
    estimate = identify_logs(robot, even, (), Experiment(robot=robot, gains=common))
    assert estimate["gain_common"].value == pytest.approx(0.7, rel=0.01)


def test_34_no_known_mass_anywhere_is_refused_in_plain_words() -> None:
    robot, logs, _ = serial(0.01, None, seconds=8.0)
    bare = replace(robot, payloads={"ballast": replace(robot.payloads["ballast"], known={})})
    with pytest.raises(InputError, match="the common scale of efforts and parameters is not identifiable"):
        identify_logs(bare, logs, (), Experiment(robot=bare, gains=GainSettings()))


def test_a_known_mass_that_is_always_mounted_is_refused() -> None:
    robot, logs, _ = serial(0.01, None, seconds=8.0)
    with pytest.raises(InputError, match="not identifiable"):
        identify_logs(robot, logs[2:], (), Experiment(robot=robot, gains=GainSettings()))


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        (None, True),
        ({"nominal": 2.0}, False),
        ({"unknown": "all"}, False),
        ({"unknown": ["J1"], "nominal": {f"J{k}": 2.0 for k in range(2, 7)}}, False),
        ({"unknown": ["J1"]}, True),
    ],
)
def test_currents_need_no_other_scale_than_the_gains(settings, warns) -> None:
    t = np.arange(0.0, 1.0, 0.01)
    columns = {"t": t} | {f"q_{k}": np.sin(t + k) for k in range(1, 7)}
    columns |= {f"current_{k} [A]": np.cos(t + k) for k in range(1, 7)}
    experiment = experiment_from({"robot": "serial6", "logs": ["a.csv"], "gains": settings})
    log = read_source(columns, load_robot("serial6"), experiment)
    assert ("effort-from-current" in {item.code for item in log.notices}) == warns


def test_settings_are_checked_and_read_from_files(tmp_path) -> None:
    with pytest.raises(InputError, match=r"nominal gain 0\.0 is not valid"):
        GainSettings(nominal={"J1": 0.0})
    with pytest.raises(InputError, match="did you mean 'J1'"):
        GainSettings(unknown=("J1x",)).open_motors(("J1", "J2"))
    with pytest.raises(InputError, match="says torques"):
        GainSettings(nominal=2.0, logged="torque")
    file = tmp_path / "e.yaml"
    file.write_text(
        "robot: serial6\nlogs: [a.csv]\ngains: {unknown: [J1, J2], nominal: {J1: 2.5}, common: false}\n"
    )
    settings = read_experiment(file).gains
    assert settings == GainSettings(unknown=("J1", "J2"), nominal={"J1": 2.5})
    assert settings.currents
    file.write_text("robot: serial6\nlogs: [a.csv]\ngains: all\n")
    assert read_experiment(file).gains == GainSettings()
    robot, logs, _ = serial(0.01, None, seconds=8.0)
    experiment = Experiment(robot=robot, gains=GainSettings(), estimator="tls")
    with pytest.raises(InputError, match="maximum likelihood"):
        identify_logs(robot, logs, (), experiment)


def lacking_friction(robot, truth, rng):
    """Stribeck curves of random height and speed, for every joint."""
    return ExtraFriction(
        robot,
        {
            name: FrictionLaw(
                breakaway=truth[f"Fs_{name}"] * rng.uniform(0.3, 0.8), speed=rng.uniform(0.05, 0.3)
            )
            for name in robot.coordinates
        },
    )


def gains_of_an_arm(name, seed, weighed=4.0):
    """Gains found with a load of `weighed` kg, and the true ones; the model lacks Stribeck and load friction.

    Three motions, each recorded once without and twice with the load.
    """
    rng = np.random.default_rng([33, seed])
    plain = load_robot(name)
    demo = read_demo(demo_file(name), plain)
    known = {"M": weighed, "MX": 0.0, "MY": 0.05 * weighed, "MZ": 0.08 * weighed}
    load = Payload("load", list(plain.bodies)[-1], known=known)
    robot = replace(plain, payloads={"load": load})
    true = replace(robot, drive={owner: (*terms, "Fl") for owner, terms in robot.drive.items()})
    truth = dict(demo.truth) | {f"{symbol}_load": known.get(symbol, 0.0) for symbol in SYMBOLS}
    truth |= {f"{symbol}_load": 0.05 for symbol in ("XX", "YY", "ZZ")} | {"YZ_load": -0.05 * 0.08 * weighed}
    truth |= {f"Fl_{joint}": rng.uniform(0.0, 0.05) for joint in robot.coordinates}
    friction = lacking_friction(robot, truth, rng)
    factors = rng.uniform(0.6, 1.5, len(robot.actuators))
    logs = []
    for k in range(9):
        motion = random_motion(plain, seed=50 * seed + k % 3, draws=5)
        mounted = ("load",) if k >= 3 else ()
        course = prescribed_course(true, truth, motion, np.arange(1001) / 100.0, mounted, friction=friction)
        sensing = Sensing(resolution=2.0 * np.pi / 2**17, effort_sigma=demo.torque_sigma)
        log = recorded(course, sensing, rng).log(robot, mounted, f"run {k + 1}")
        logs.append(replace(log, tau=log.tau / factors))
    fit = fit_task(Task(robot, tuple(logs), Experiment(robot=robot, gains=GainSettings())))
    true_gains = {f"gain_{motor.name}": g for motor, g in zip(robot.actuators, factors, strict=True)}
    return [p for p in fit.parts.parameters if p.name in true_gains], true_gains


@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_intervals_of_every_gain_hold_with_friction_that_the_model_lacks(name) -> None:
    hits = []
    for seed in range(40):
        found, truth = gains_of_an_arm(name, seed)
        hits.append([p.ci95[0] <= truth[p.name] <= p.ci95[1] for p in found])
    # 40 intervals of each gain: 95 % +- 3.4 %.
    assert np.all(np.mean(hits, axis=0) >= 0.9)
    assert np.mean(hits) <= 0.99
