"""Built-in robots: frames, true bodies, and the experiments that come with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.inertia import is_physical
from dynid.mechanism.load import builtin_robots, load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.robots.demo_file import demo_file, read_demo, read_free_demo
from dynid.simulation.demo import BuiltInExperiment, built_in_experiment, run_demo

ARMS = ("panda", "puma560", "scara", "serial6", "ur5")
CLOSED = ("dualv", "evra", "orthoglide")
ROBOTS = ARMS + CLOSED

# The 6R arm of cylinders: lengths, radii, and in the initial posture the directions of the
# cylinders and of the hinge axes in the world (not normalised).
LENGTHS = (1.045, 1.245, 1.21, 0.315, 0.29, 0.3)
RADII = (0.5, 0.3, 0.2, 0.2, 0.2, 0.3)
E1 = ((0, 0, 1), (0.3, 0, 1), (1, 0, -0.2), (1, 0.3, 0), (0.6, 0, -1), (0.2, 0.4, -1))
AXES = ((0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0.3, 0), (0, 1, 0), (0.2, 0.4, -1))


def unit(v) -> np.ndarray:
    return np.asarray(v, float) / np.linalg.norm(v)


def poses(robot, q):
    motion = body_motion(tree_of(robot), q, np.zeros_like(q), np.zeros_like(q))
    return motion.R, motion.p


@pytest.mark.parametrize("name", sorted(builtin_robots()))
def test_every_robot_loads_without_notices_and_has_an_experiment_with_possible_bodies(name: str) -> None:
    robot = load_robot(name)
    assert builtin_robots()[name], f"{name} has no description"
    assert robot.name == name
    assert robot.notices == ()
    demo = read_free_demo(demo_file(name), robot) or read_demo(demo_file(name), robot)
    truth, table = dict(demo.truth), parameter_table(robot)
    assert set(truth) >= {parameter.name for parameter in table}
    for body in robot.bodies:
        chi = np.array([truth[p.name] for p in table if p.owner == body and p.kind == "inertial"])
        # Bodies between cables and platform are massless, and some carry a mass alone.
        assert is_physical(chi) if len(chi) == 10 else np.all(chi[-1:] > 0), body


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_have_limits_of_every_coordinate(name: str) -> None:
    robot = load_robot(name)
    assert set(robot.limits) >= set(robot.measured if robot.loops else robot.coordinates)


def test_serial6_frames_in_the_initial_posture() -> None:
    R, p = poses(load_robot("serial6"), np.zeros((1, 6)))
    hinge = np.zeros(3)
    for i in range(6):
        e1 = unit(E1[i])
        e2 = unit(np.array([0, 1.0, 0]) - e1[1] * e1)
        expected = np.column_stack([e1, e2, np.cross(e1, e2)])
        # Six frames in a chain, each exact to rounding.
        np.testing.assert_allclose(R[0, i], expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(p[0, i], hinge + LENGTHS[i] / 2 * e1, rtol=0, atol=1e-12)
        hinge = hinge + LENGTHS[i] * e1


def test_serial6_axes_in_the_initial_posture() -> None:
    robot = load_robot("serial6")
    dq = np.eye(6)
    motion = body_motion(tree_of(robot), np.zeros((6, 6)), dq, np.zeros((6, 6)))
    for i in range(6):
        omega = motion.R[i, i] @ motion.V[i, i, 3:]
        np.testing.assert_allclose(omega, unit(AXES[i]), rtol=0, atol=1e-12)
    assert robot.drive == {}
    np.testing.assert_array_equal(robot.gravity, [0, 0, -9.80665])


def test_serial6_bodies_are_steel_cylinders() -> None:
    demo = read_demo(demo_file("serial6"), load_robot("serial6"))
    for i, (r, length) in enumerate(zip(RADII, LENGTHS, strict=True), start=1):
        mass = 7801 * np.pi * r**2 * length
        across = mass * (3 * r**2 + length**2) / 12
        expected = {"M": mass, "XX": mass * r**2 / 2, "YY": across, "ZZ": across}
        for symbol in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M"):
            # The same products in another order.
            assert demo.truth[f"{symbol}_B{i}"] == pytest.approx(expected.get(symbol, 0.0), rel=1e-14, abs=0)


def test_ur5_reach_follows_its_table() -> None:
    robot = load_robot("ur5")
    q = np.array([[0.3, -1.1, 0.7, -0.4, 1.2, 0.5]])
    # Denavit-Hartenberg: Rz(q) Tz(d) Tx(a) Rx(alpha), the origin of the last but one link's end.
    d, a = (0.089159, 0, 0, 0.10915, 0.09465), (0, -0.425, -0.39225, 0, 0)
    alpha = (np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2)
    T = np.eye(4)
    for i in range(5):
        c, s, ca, sa = np.cos(q[0, i]), np.sin(q[0, i]), np.cos(alpha[i]), np.sin(alpha[i])
        T = T @ np.array(
            [[c, -s * ca, s * sa, a[i] * c], [s, c * ca, -c * sa, a[i] * s], [0, sa, ca, d[i]], [0, 0, 0, 1]]
        )
    R, p = poses(robot, q)
    np.testing.assert_allclose(p[0, 5], T[:3, 3], rtol=0, atol=1e-14)  # rounding of five frames
    np.testing.assert_allclose(R[0, 5, :, 2], T[:3, 2], rtol=0, atol=1e-14)


def test_puma_stretched_arm_has_its_published_reach() -> None:
    _, p = poses(load_robot("puma560"), np.array([[0, 0, -np.pi / 2, 0, 0, 0.0]]))
    # Upper arm along x, forearm turned by the elbow: lengths straight from the table.
    np.testing.assert_allclose(p[0, 2], [0.4318, 0.1501, 0], atol=1e-15)
    assert np.linalg.norm(p[0, 5] - p[0, 2]) == pytest.approx(np.hypot(0.4331, 0.0203), rel=1e-12)


@pytest.mark.parametrize("name", ROBOTS)
def test_true_parameters_are_complete_and_physical(name: str) -> None:
    robot = load_robot(name)
    demo = read_demo(demo_file(name), robot)
    table = parameter_table(robot)
    assert list(demo.truth) == [parameter.name for parameter in table]
    for body in robot.bodies:
        chi = np.array([demo.truth[p.name] for p in table if p.owner == body and p.kind == "inertial"])
        assert chi[-1] > 0 if len(chi) == 1 else is_physical(chi), body
    for parameter in table:
        if parameter.symbol.rstrip("+-") in ("Ia", "Fv", "Fs"):
            assert demo.truth[parameter.name] > 0, parameter.name


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiments of one period at 100 Hz, along the first motion that is drawn."""
    file = "dynid.simulation.demo.read_demo"
    monkeypatch.setattr(file, lambda *given: replace(read_demo(*given), rate=100.0, periods=1, draws=1))


def check_logs(demo: BuiltInExperiment) -> None:
    for log in (*demo.logs, demo.validation):
        assert log.notices == ()
        assert len(log.segments) == 1
        assert np.all(np.isfinite(log.tau))
    assert len({log.name for log in (*demo.logs, demo.validation)}) == len(demo.logs) + 1
    assert not np.array_equal(demo.logs[0].q, demo.validation.q)


@pytest.mark.parametrize("name", ROBOTS)
def test_every_experiment_simulates(name: str, short) -> None:
    check_logs(built_in_experiment(name))


@pytest.mark.parametrize("name", ROBOTS)
def test_every_experiment_simulates_as_its_file_says(name: str) -> None:
    check_logs(built_in_experiment(name))


def test_the_same_seed_gives_the_same_experiment(short) -> None:
    first, again, other = (built_in_experiment("scara", seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.logs[0].tau, again.logs[0].tau)
    assert not np.array_equal(first.logs[0].tau, other.logs[0].tau)


@pytest.mark.parametrize("name", ["scara", "puma560"])
def test_the_demo_finds_the_truth(name: str) -> None:
    told = []
    estimate = run_demo(name, lambda stage, fraction: told.append((stage, fraction)))
    assert estimate.truth is not None
    assert set(estimate.truth) == {parameter.name for parameter in estimate.parameters}
    half = [0.5 * (p.ci95[1] - p.ci95[0]) for p in estimate.parameters if p.ci95]
    off = [p.value - estimate.truth[p.name] for p in estimate.parameters if p.ci95]
    # Two and a half half widths for the worst of about fifty errors: chance brings that once in a
    # hundred runs where sigma has ten degrees of freedom, far more rarely with more.
    assert np.max(np.abs(off) / half) < 2.5
    assert estimate.validation[0].independent
    # Noise is 1 to 4 % of the efforts; what the filtered rows keep of it is less.
    assert estimate.validation[0].residual_percent < 2
    assert estimate.provenance["seed"] == 1
    assert told[0] == ("simulating", 0.0)


def test_the_dualv_demo_finds_the_payload(monkeypatch) -> None:
    # Symbols in groupings take most of the time, and are tested elsewhere.
    monkeypatch.setattr("dynid.pipeline.grouping_symbols", lambda *_, **__: {})
    estimate = run_demo("dualv")
    assert estimate.model == "power"
    payload = next(one for one in estimate.parameters if one.name == "M_payload")
    assert payload.value == pytest.approx(5.37, rel=0.01)
    assert payload.sigma is not None
    assert 5e-4 < payload.sigma / payload.value < 3e-3
    assert abs(payload.value - 5.37) < 4 * payload.sigma
    assert estimate.validation[0].independent


def test_runs_of_an_experiment_may_carry_payloads(short) -> None:
    demo = built_in_experiment("dualv")
    assert [log.payloads for log in demo.logs] == [(), ("payload",)]
    assert demo.validation.payloads == ("payload",)
    # A point mass: what the description takes as known of the payload is true.
    orthoglide = read_demo(demo_file("orthoglide"), load_robot("orthoglide"))
    assert orthoglide.truth["M_payload"] == 2.0
    assert orthoglide.truth["ZZ_payload"] == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("{payload: payload}]", "{payload: paylaod}]"), "did you mean 'payload'"),
        (("[{}, {payload: payload}]", "[]"), "no run"),
        (("    payload: {M: 5.37", "    pyload: {M: 5.37"), "unknown payload 'pyload'"),
        (("tension: 6", "tension: -6"), "not positive"),
    ],
)
def test_faults_of_runs_are_named(tmp_path: Path, change, message) -> None:
    text = demo_file("dualv").read_text()
    assert change[0] in text
    file = tmp_path / "dualv.demo.yaml"
    file.write_text(text.replace(*change))
    with pytest.raises(InputError, match=message):
        read_demo(file, load_robot("dualv"))


def test_unknown_experiment_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'puma560'"):
        built_in_experiment("puma56")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rate: 1000", "rate: -1"), "not positive"),
        (("runs: 2", "rnus: 2"), "did you mean 'runs'"),
        (("    wrist: {Ia: 4.5e-3, Fv: 0.012, Fs: 0.11, Off: 0.01}\n", ""), "Ia_wrist"),
        (("ZZ: 0.062", "ZZ: 0.62"), "parameters of 'forearm' are not physical"),
        (("forearm: {M", "forarm: {M"), "did you mean 'forearm'"),
        (("wrist: 0.02}", "wirst: 0.02}"), "did you mean 'wrist'"),
    ],
)
def test_faults_of_an_experiment_file_are_named(tmp_path: Path, change, message) -> None:
    text = demo_file("scara").read_text()
    assert change[0] in text
    file = tmp_path / "scara.demo.yaml"
    file.write_text(text.replace(*change))
    with pytest.raises(InputError, match=message):
        read_demo(file, load_robot("scara"))
