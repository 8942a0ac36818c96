"""From logs to a full set of real bodies: truth found again, known values, ties, and honest refusals."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dynid.checks.check import Finished
from dynid.checks.estimate import negative, rotors
from dynid.cli import main
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import notice
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import (
    Experiment,
    FilterSettings,
    MaskSettings,
    TieChoice,
    read_experiment,
)
from dynid.fit import fit_task
from dynid.mechanism.inertia import SYMBOLS, is_physical
from dynid.mechanism.load import load_robot
from dynid.pipeline import identify, identify_logs, validate_result
from dynid.report.html import report_html
from dynid.report.json_file import json_text, read_result, result_document
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import ParameterEstimate
from dynid.unknown import Task
from tests.built_in import robot_of, truth_of
from tests.systems import parameters

pytestmark = pytest.mark.usefixtures("no_symbols")

# Exact rates, no filter and no mask: what is left is rounding.
EXACT = {
    "filter": FilterSettings(kind="none", velocity="measured", decimate=1),
    "mask": MaskSettings(speed=0.0, rest=0.0),
    "uncertainty": "classical",
}
ARM = """
name: arm
joints:
  - {name: shoulder, kind: revolute, parent: base, child: upper, mdh: {alpha: pi/2}}
  - {name: elbow, kind: revolute, parent: upper, child: fore, mdh: {d: 0.4}}
  - {name: flange, kind: fixed, parent: fore, child: tip, xyz: [0.3, 0, 0]}
drive: {shoulder: [Ia, Fv, Fs, Off], elbow: [Ia, Fv, Fs, Off]}
bodies:
  tip: {parameters: []}
  upper: {prior: {M: 4, com: [0.2, 0, 0], XX: 0.02, YY: 0.2, ZZ: 0.2, XY: 0, XZ: 0, YZ: 0}}
  fore: {prior: {M: 2, com: [0.15, 0, 0], XX: 0.01, YY: 0.08, ZZ: 0.08, XY: 0, XZ: 0, YZ: 0}}
payloads: {tool: {body: tip, prior: {M: 1, com: [0, 0, 0.05]}}}
ties: {links: [[upper, fore]]}
limits:
  shoulder: {q: [-2, 2], dq: 4, ddq: 20}
  elbow: {q: [-2, 2], dq: 4, ddq: 20}
"""
TRUTH = {"M_upper": 4.4, "MX_upper": 0.95, "MY_upper": 0.03, "MZ_upper": 0.0, "XX_upper": 0.03}
TRUTH |= {"YY_upper": 0.27, "ZZ_upper": 0.26, "XY_upper": 0.0, "XZ_upper": 0.0, "YZ_upper": 0.0}
TRUTH |= {"M_fore": 1.9, "MX_fore": 0.3, "MY_fore": 0.01, "MZ_fore": 0.0, "XX_fore": 0.01}
TRUTH |= {"YY_fore": 0.085, "ZZ_fore": 0.083, "XY_fore": 0.0, "XZ_fore": 0.0, "YZ_fore": 0.0}
TRUTH |= {"Ia_shoulder": 0.2, "Fv_shoulder": 0.7, "Fs_shoulder": 1.2, "Off_shoulder": -0.3}
TRUTH |= {"Ia_elbow": 0.05, "Fv_elbow": 0.3, "Fs_elbow": 0.6, "Off_elbow": 0.1}
TRUTH |= {"M_tool": 1.2, "MX_tool": 0.0, "MY_tool": 0.01, "MZ_tool": 0.07, "XX_tool": 0.01, "YY_tool": 0.01}
TRUTH |= {"ZZ_tool": 0.004, "XY_tool": 0.0, "XZ_tool": 0.0, "YZ_tool": 0.0}


@cache
def arm_file(tmp: str, text: str = ARM):
    file = f"{tmp}/arm.yaml"
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
    return file


@pytest.fixture
def arm(tmp_path):
    """The arm with some of its text changed, and its log."""

    def make(*changes):
        text = ARM
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return load_robot(arm_file(str(tmp_path), text))

    return make


def log_of(robot, truth=TRUTH, *, noise=0.0, payloads=(), seed=1):
    motion = random_motion(robot, seed, harmonics=4, frequency=0.5, draws=1)
    log = simulate_log(
        robot,
        truth,
        motion,
        rate=200.0,
        duration=motion.period,
        velocity=True,
        torque_sigma=noise,
        payloads=payloads,
        name=f"run {seed}",
        seed=seed,
    )
    return replace(log, ddq=motion.ddq(log.t))


def values(estimate) -> dict[str, float]:
    return {entry["name"]: entry["value"] for entry in estimate.standard}


def sources(estimate) -> dict[str, str]:
    return {entry["name"]: entry["from"] for entry in estimate.standard}


def check_bodies(estimate) -> int:
    """Every body with ten entries is real; how many there are."""
    found = values(estimate)
    bodies = [name[2:] for name in found if name.startswith("M_") and f"XX_{name[2:]}" in found]
    for body in bodies:
        assert is_physical(np.array([found[f"{symbol}_{body}"] for symbol in SYMBOLS])), body
    return len(bodies)


# ---------------------------------------------------------------- truth


@pytest.mark.parametrize(
    ("name", "mass", "runs"),
    [("serial6", 20000.0, [()]), ("dualv", 60.0, [(), ("payload",)]), ("orthoglide", 20.0, [(), ()])],
)
@pytest.mark.parametrize("prior", ["entropic", "euclidean"])
def test_the_truth_is_found_without_noise(name, mass, runs, prior) -> None:
    robot = load_robot(name)
    truth = truth_of(name)
    logs = [log_of(robot, truth, payloads=mounted, seed=i + 1) for i, mounted in enumerate(runs)]
    estimator = {"name": "consistent", "mass": mass, "prior": prior}
    options = {"estimator": estimator, **EXACT}
    estimate = identify_logs(robot, logs, (), Experiment(robot, **options), truth=truth)
    assert estimate.truth is not None
    for one in estimate.parameters:
        # The solver's 1e-8, times up to 1e4 of condition on orthoglide; below 1e-3 SI as that.
        assert one.value == pytest.approx(estimate.truth[one.name], rel=1e-5, abs=1e-7), one.name
    assert check_bodies(estimate) >= 6


def test_the_standard_set_follows_data_and_prior(arm) -> None:
    robot = arm()
    estimate = identify(robot, log_of(robot, noise=0.01), standard=True, **EXACT)
    assert estimate.estimator == "wls"
    assert check_bodies(estimate) == 2
    told = sources(estimate)
    assert told["Fv_elbow"] == told["Off_shoulder"] == told["MX_fore"] == "data"
    # The shoulder turns about a horizontal axis of its own: nothing feels the mass of its link.
    assert told["M_upper"] == told["XX_upper"] == told["MZ_fore"] == "prior"
    found = values(estimate)
    # The rows do not feel it: the prior itself, to the solver's tolerance.
    assert found["M_upper"] == pytest.approx(4.0, rel=0.2)
    assert found["MX_fore"] == pytest.approx(TRUTH["MX_fore"], rel=0.02)  # 1 % noise


def test_a_consistent_result_predicts_with_its_bodies(arm, tmp_path) -> None:
    robot = arm()
    logs = [log_of(robot, noise=0.02), log_of(robot, noise=0.02, seed=2)]
    estimate = identify(robot, logs[0], validate=logs[1], estimator="consistent", **EXACT)
    (tmp_path / "result.json").write_text(json_text(result_document(estimate)))
    again, _ = validate_result(tmp_path, logs[1:])
    assert again[0].effort_percent == pytest.approx(estimate.validation[0].effort_percent, rel=1e-9)
    assert read_result(tmp_path).standard == estimate.standard
    assert "Standard parameters (28)" in report_html(estimate)


# ---------------------------------------------------------------- known values, ties, payloads


def test_known_values_are_kept(arm) -> None:
    robot = arm(("fore: {prior:", "fore: {known: {M: 1.9, YZ: 0}, prior:"))
    estimate = identify(robot, log_of(robot), estimator="consistent", **EXACT)
    found = values(estimate)
    assert found["M_fore"] == 1.9
    assert sources(estimate)["M_fore"] == "prior"
    assert check_bodies(estimate) == 2


def test_known_values_that_no_body_has_are_said(arm) -> None:
    robot = arm(("fore: {prior:", "fore: {known: {M: 1, MX: 1, XX: 0.1, YY: 0.1, ZZ: 0.1}, prior:"))
    with pytest.raises(NoResultError, match="no physically consistent bodies have the given") as error:
        identify(robot, log_of(robot), estimator="consistent", **EXACT)
    estimate = error.value.estimate
    assert estimate is not None
    assert estimate.standard == ()  # nothing in its place, least of all the prior
    assert "not-consistent" in [one.code for one in estimate.warnings]
    assert estimate.parameters


@pytest.mark.parametrize("apply", ["standard", "regrouped"])
def test_tied_bodies_are_equal(arm, apply) -> None:
    robot = arm()
    truth = {**TRUTH, **{f"{s}_fore": TRUTH[f"{s}_upper"] for s in SYMBOLS}}
    estimate = identify(
        robot, log_of(robot, truth), estimator="consistent", ties=(TieChoice("links", apply),), **EXACT
    )
    found = values(estimate)
    if apply == "standard":
        for symbol in SYMBOLS:
            assert found[f"{symbol}_upper"] == found[f"{symbol}_fore"]
    assert check_bodies(estimate) == 2
    assert estimate.fit.residual_percent < 1e-4 if apply == "standard" else True


def test_a_payload_is_a_body_too(arm) -> None:
    robot = arm()
    logs = [log_of(robot), log_of(robot, payloads=("tool",), seed=2)]
    estimate = identify(robot, logs, estimator="consistent", **EXACT)
    assert check_bodies(estimate) == 3
    assert values(estimate)["M_tool"] > 0


# ---------------------------------------------------------------- refusals and warnings


def test_bodies_without_any_mass_are_unbounded(arm) -> None:
    bare = arm(
        (
            "upper: {prior: {M: 4, com: [0.2, 0, 0], XX: 0.02, YY: 0.2, ZZ: 0.2, XY: 0, XZ: 0, YZ: 0}}",
            "upper: {}",
        ),
        (
            "fore: {prior: {M: 2, com: [0.15, 0, 0], XX: 0.01, YY: 0.08, ZZ: 0.08, XY: 0, XZ: 0, YZ: 0}}",
            "fore: {}",
        ),
    )
    log = log_of(bare)
    with pytest.raises(NoResultError, match=r"grow without limit.*upper") as error:
        identify(bare, log, estimator="consistent", **EXACT)
    assert error.value.exit_code == 3
    capped = identify(bare, log, estimator={"name": "consistent", "mass": 10}, **EXACT)
    assert "generic-prior" in [one.code for one in capped.warnings]
    found = values(capped)
    assert found["M_upper"] + found["M_fore"] <= 10 + 1e-6


def test_parameters_at_a_bound_are_named(arm) -> None:
    robot = arm()
    log = log_of(robot, {**TRUTH, "Fv_elbow": -0.2}, noise=0.01)
    linear = identify(robot, log, **EXACT)
    assert {"not-physical", "negative-parameter"} <= {one.code for one in linear.warnings}
    estimate = identify(robot, log, estimator="consistent", **EXACT)
    told = {one.code: one.text for one in estimate.warnings}
    assert "Fv_elbow" in told["at-bound"]
    assert values(estimate)["Fv_elbow"] == 0.0
    assert estimate["Fv_elbow"].value == pytest.approx(0.0, abs=1e-12)


def test_a_zero_that_the_prior_chose_is_no_alarm(arm) -> None:
    """Of the first joint only inertia and rotor together act: how much is rotor, no row tells."""
    robot = arm(("XX: 0.02, YY: 0.2, ZZ: 0.2", "XX: 0.02, YY: 2.0, ZZ: 2.0"))
    estimate = identify(robot, log_of(robot, noise=0.01), estimator="consistent", **EXACT)
    assert values(estimate)["Ia_shoulder"] == 0.0
    assert "at-bound" not in [one.code for one in estimate.warnings]


def test_clean_data_raise_no_alarm(arm) -> None:
    robot = arm()
    codes = {one.code for one in identify(robot, log_of(robot, noise=0.05), **EXACT).warnings}
    assert not codes & {"not-physical", "rotor-not-felt", "at-bound"}


def test_the_same_body_everywhere_is_a_placeholder() -> None:
    from dynid.estimator.rigid_bodies import RigidBody
    from dynid.estimator.standard_space import StandardSpace
    from dynid.statistics.standard import _priors

    same = np.array([0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0, 1.0])
    bodies = tuple(RigidBody(f"b{i}", tuple(range(10)), 1.0, 0.1, same, True) for i in range(3))
    none = np.zeros((0, 0)), np.zeros((0, 10)), np.zeros(0)
    told = _priors(StandardSpace(parameters(10), np.eye(10), np.zeros(10), bodies, *none))
    assert [one.code for one in told] == ["placeholder-prior"]


@pytest.mark.parametrize(
    ("inertia", "sigma", "felt"), [(-0.3, 0.0, False), (-0.3, 5.0, True), (0.3, 0.0, True)]
)
@pytest.mark.parametrize("estimator", ["wls", "consistent"])
def test_rotors_that_are_nowhere_felt_are_said(
    inertia: float, sigma: float, felt: bool, estimator: str
) -> None:
    """Intervals are those of the result: lengths that are known to 5 m only hide most signs."""
    robot = robot_of("ur5")
    robot = replace(robot, uncertain=dict.fromkeys(robot.geometry, sigma) if sigma else {})
    truth = {name: inertia if name.startswith("Ia_") else x for name, x in truth_of("ur5").items()}
    log = log_of(robot, truth, noise=0.05)
    fit = fit_task(Task(robot, (log,), Experiment(robot=robot, auto="off", estimator=estimator)))
    assert [remark.code for remark in rotors(Finished(fit))] == ([] if felt else ["rotor-not-felt"])


def test_negative_rotors_are_named_by_one_warning() -> None:
    """Two warnings that named different joints for the same thing confused a reader."""
    values = {"Ia_j1": -0.05, "Ia_j2": -0.02, "Fv_j1": -0.3}
    found = tuple(
        ParameterEstimate(name, "1", value, 0.1 * abs(value), 10.0, (1.2 * value, 0.8 * value))
        for name, value in values.items()
    )
    fit: Any = SimpleNamespace(parts=SimpleNamespace(parameters=found))
    alone, beside = (
        [one.text for one in negative(Finished(fit, notices=told))]
        for told in ((), (notice("rotor-not-felt", names="j1, j2"),))
    )
    assert all(name in alone[0] for name in values)
    assert "Fv_j1" in beside[0]
    assert "Ia" not in beside[0]


def test_parameters_set_to_zero_are_no_bodies(arm) -> None:
    robot = arm()
    with pytest.raises(InputError, match="which is not physically consistent"):
        identify(robot, log_of(robot), estimator="consistent", essential={"ratio": 10}, **EXACT)
    # Beside another estimator the bodies come from its full fit.
    reduced = identify(robot, log_of(robot, noise=0.01), standard=True, essential={"ratio": 30}, **EXACT)
    assert check_bodies(reduced) == 2


# ---------------------------------------------------------------- files and the command line


def test_the_experiment_file_asks_for_it(tmp_path) -> None:
    file = tmp_path / "fit.yaml"
    head = "robot: arm.yaml\nlogs: [run.csv]\n"
    file.write_text(head + "standard: {prior: euclidean, mass: {total: 30, fore: 5}}\n")
    read = read_experiment(file).standard
    assert (read.prior, dict(read.mass)) == ("euclidean", {"total": 30.0, "fore": 5.0})
    file.write_text(head + "standard: true\n")
    assert read_experiment(file).standard is not None
    file.write_text(
        head
        + "estimator: {name: consistent, spread: 2, com: {fore: {centre: [0, 0, 0], radii: [1, 1, 1]}}}\n"
    )
    assert read_experiment(file).estimator_options["spread"] == 2
    for line, match in (
        ("standard: {spred: 3}", r"line 3.*did you mean 'spread'"),
        ("standard: maybe", "expected true or false"),
        ("estimator: {name: consistent, prior: entropi}", "did you mean 'entropic'"),
        ("estimator: consistent\nstandard: {spread: 2}", "with its own options"),
    ):
        file.write_text(head + line + "\n")
        with pytest.raises(InputError, match=f"(?s){match}"):
            read_experiment(file)


def test_the_command_ends_in_3_and_saves_what_was_found(arm, tmp_path) -> None:
    from click.testing import CliRunner

    from tests.arms import write_csv

    arm(
        ("prior: {M: 4, com: [0.2, 0, 0], XX: 0.02, YY: 0.2, ZZ: 0.2, XY: 0, XZ: 0, YZ: 0}", ""),
        ("prior: {M: 2, com: [0.15, 0, 0], XX: 0.01, YY: 0.08, ZZ: 0.08, XY: 0, XZ: 0, YZ: 0}", ""),
    )
    log = log_of(load_robot(tmp_path / "arm.yaml"), noise=0.01)
    columns = {"t": log.t} | {f"q_{i + 1}": log.q[:, i] for i in range(2)}
    columns |= {f"tau_{i + 1}": log.tau[:, i] for i in range(2)}
    write_csv(tmp_path / "run.csv", columns)
    (tmp_path / "fit.yaml").write_text("robot: arm.yaml\nlogs: [run.csv]\nestimator: consistent\nout: out\n")
    ran = CliRunner().invoke(main, ["identify", str(tmp_path / "fit.yaml")])
    assert ran.exit_code == 3
    saved = read_result(tmp_path / "out")
    assert saved.standard == ()
    assert "not-consistent" in [one.code for one in saved.warnings]
