"""What pages draw: parts of efforts that add up, bodies near the description, loops that stay closed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid import export
from dynid.display.scene import poses_along, robot_shapes
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.frame import rotation_of
from dynid.mechanism.load import load_robot
from dynid.pipeline import identify
from dynid.simulation.demo import built_in_experiment
from dynid.statistics.estimate import Estimate
from dynid.statistics.prediction import _autocorrelation, _lagged


@cache
def found() -> Estimate:
    simulated = built_in_experiment("scara", seed=0)
    return identify(simulated.mechanism, simulated.logs[0])


def test_parts_add_up_to_the_predicted_effort() -> None:
    estimate = found()
    signals, drawn = estimate.signals[0], estimate.drawing["logs"][0]
    terms = drawn["terms"]
    assert set(terms) == {"gravity", "inertia", "Coriolis", "friction"}
    off = sum(terms.values()) - signals.predicted[drawn["rows"]]
    rms = np.sqrt(np.nanmean(off**2, axis=0) / np.nanmean(signals.predicted**2, axis=0))
    # the signals have passed the row filter, which rounds the jumps of friction; the parts have not
    assert rms.max() < 0.1
    # gravity acts along the quill of a SCARA only
    names = list(signals.names)
    heavy = np.abs(terms["gravity"]).max(axis=0)
    assert heavy[names.index("quill")] > 1.0
    assert np.delete(heavy, names.index("quill")).max() < 1e-9


def test_friction_curves_are_those_of_the_parameters() -> None:
    estimate = found()
    for curve in estimate.drawing["logs"][0]["friction"]:
        owner, v = curve["owner"], curve["speed"]
        value = {symbol: estimate[f"{symbol}_{owner}"].value for symbol in curve["terms"]}
        offset = value.get("Off", 0.0)
        expected = value["Fv"] * v + value["Fs"] * np.sign(v) + offset
        np.testing.assert_allclose(curve["effort"], expected, rtol=1e-9)  # the same sum
        assert np.nanmin(curve["half"]) > 0.0
        # Viscous and dry friction grow together; at the largest speed no term alone is wider than the sum
        # of all halves.
        halves = {s: 0.5 * np.ptp(estimate[f"{s}_{owner}"].ci95) for s in curve["terms"]}
        most = halves["Fv"] * v[-1] + halves["Fs"] + halves.get("Off", 0.0)
        assert 0.0 < curve["half"][-1] < 1.3 * most  # t of the least degrees of freedom
        # a point is the curve plus a residual: its rms is that of the residuals, far below the friction
        near = np.interp(curve["at"], v[np.isfinite(v)], curve["effort"][np.isfinite(v)])
        assert np.nanmedian(np.abs(curve["points"] - near)) < 0.2 * np.nanmax(np.abs(curve["effort"]))


def test_a_body_keeps_its_description_where_the_log_agrees() -> None:
    simulated = built_in_experiment("ur5", seed=0)
    bodies = identify(simulated.mechanism, simulated.logs[0]).bodies
    for body in bodies:
        # the description has the true masses: noise may move a light one by some percent
        assert body["mass"] == pytest.approx(body["prior_mass"], rel=0.15)
    assert bodies[0]["mass_share"] == pytest.approx(0.0, abs=1e-6)  # nothing lifts the first link


@pytest.mark.parametrize(("name", "standard"), [("scara", False), ("ur5", True)])
def test_bodies_are_those_that_an_export_writes(name: str, standard: bool, tmp_path: Path) -> None:
    """With noise, by least squares: the nearest consistent set, or the one that was asked for."""
    simulated = built_in_experiment(name, seed=1)
    estimate = identify(simulated.mechanism, simulated.logs[0], auto="off", standard=standard)
    assert all(body["exported"] for body in estimate.bodies)
    export(estimate, "yaml", tmp_path)
    written = load_robot(next(tmp_path.glob("*.yaml")))
    shown = {body["name"]: body["mass"] for body in estimate.bodies}
    assert shown == pytest.approx({name: body.prior["M"] for name, body in written.bodies.items()}, rel=1e-12)
    estimate.save(tmp_path / "saved")
    again = Estimate.load(tmp_path / "saved")
    assert {body["name"]: body["mass"] for body in again.bodies} == pytest.approx(shown, rel=1e-9)
    if standard:
        given = {entry["name"]: entry["value"] for entry in estimate.standard}
        assert shown == pytest.approx({name: given[f"M_{name}"] for name in shown}, rel=1e-12)


def test_masses_in_sums_are_unknown_where_no_real_robot_is_near() -> None:
    """Dry friction that is negative by far: the sums could be divided among bodies in any way."""
    simulated = built_in_experiment("ur5", seed=1)
    estimate = identify(simulated.mechanism, simulated.logs[0], auto="off")
    pushing = [replace(p, value=-10.0) if p.name == "Fs_elbow_joint" else p for p in estimate.parameters]
    bodies = replace(estimate, parameters=tuple(pushing)).bodies
    assert not any(body["exported"] for body in bodies)
    assert all((body["mass"] is None) == (body["mass_sigma"] is None) for body in bodies)
    assert all(body["centre"] is None for body in bodies if body["mass"] is None)


@pytest.mark.parametrize("name", ["fivebar", "orthoglide"])
def test_drawn_loops_stay_closed(name: str) -> None:
    robot = load_robot(name)
    q = assembly_of(robot).walk(np.random.default_rng(1), 5, reach=0.3)
    poses, shapes = poses_along(robot, q), robot_shapes(robot)
    index = {body: i for i, body in enumerate(shapes["bodies"])}

    def world(body: str, point: np.ndarray) -> np.ndarray:
        if body == "base":
            return np.tile(point, (len(q), 1))
        i = index[body]
        return poses["p"][:, i] + rotation_of(poses["R"][:, i]) @ point

    for loop in robot.loops:
        gap = world(loop.body_a, loop.a.p) - world(loop.body_b, loop.b.p)
        wanted = 0.0 if loop.length is None else loop.length
        free = loop.length is None and not {"x", "y", "z"} <= set(loop.fix)
        if not free:
            np.testing.assert_allclose(np.linalg.norm(gap, axis=1), wanted, atol=1e-7)  # solved to 1e-8
    assert shapes["links"]
    assert {one["body"] for one in shapes["links"]} <= set(range(len(index)))


def test_autocorrelation_of_known_noise() -> None:
    rng = np.random.default_rng(3)
    n = 20_000
    white = rng.standard_normal(n)
    slow = np.zeros(n)
    for i in range(1, n):
        slow[i] = 0.8 * slow[i - 1] + white[i]
    both = np.stack([white, slow])
    found = _autocorrelation(_lagged(both, np.ones_like(both)))
    # standard deviation of an estimate: 1 / sqrt(n) = 0.007; of correlated noise some times that
    np.testing.assert_allclose(found[0, 1:20], 0.0, atol=0.035)
    np.testing.assert_allclose(found[1, :5], 0.8 ** np.arange(5), atol=0.05)
