"""Closed robots from end to end: published counts, tension that does no work, and the truth found again."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynid.info
import dynid.pipeline
from dynid.base.base import base_set
from dynid.base.structural import structural_base
from dynid.common.errors import InputError
from dynid.excitation.closed import ClosedMotion
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.info import describe
from dynid.kinematics.tension import tension_directions
from dynid.mechanism.parameters import considered_order, known_columns, parameter_table
from dynid.mechanism.variant import variant
from dynid.pipeline import identify_logs
from dynid.problem import prepare
from dynid.projection.model import MODELS
from dynid.projection.structure import structural_factor
from dynid.simulation.prescribed import simulate_log
from tests.built_in import EXACT, robot_of, truth_of
from tests.test_more_robots import EXPECTED

OLS = {**EXACT, "estimator": "ols"}
D4 = 0.31025  # bars of the orthoglide, in [m]


pytestmark = pytest.mark.usefixtures("no_symbols")


@pytest.fixture(autouse=True)
def no_causes(monkeypatch) -> None:
    """Causes of refusals take most of the time, and nothing here reads them."""
    monkeypatch.setattr(dynid.pipeline, "with_likely_cause", lambda error, task: error)


@cache
def motion_of(name: str, seed: int) -> ClosedMotion:
    return random_motion(robot_of(name), seed, harmonics=6, frequency=0.5, draws=1)


@cache
def log_of(name: str, seed: int, tension: float = 0.0, payloads: tuple[str, ...] = ()):
    """One period with exact rates; 250 samples a second tell all parameters."""
    robot, motion = robot_of(name), motion_of(name, seed)
    log = simulate_log(
        robot,
        truth_of(name),
        motion,
        rate=250.0,
        duration=motion.period,
        tension=tension,
        payloads=payloads,
        velocity=True,
        name=f"{name} {seed}",
    )
    return replace(log, ddq=motion.ddq(log.t))


def identified(name: str, logs, model: str):
    return identify_logs(
        robot_of(name), logs, (), Experiment(robot=name, model=model, **OLS), truth=truth_of(name)
    )


@pytest.mark.parametrize(
    ("name", "options", "n_standard", "n_base"),
    [
        ("orthoglide", {}, 163, 43),
        ("orthoglide", {"drive": ("Ia", "Fv", "Fs")}, 160, 41),
        ("orthoglide", {"ties": ("legs",)}, 163, 23),
        ("evra", {"drive": ()}, 210, 90),
        ("evra", {"drive": (), "open_loops": True}, 210, 96),
        ("dualv", {}, 102, 28),
        ("dualv", {"payloads": ("payload",)}, 112, 32),
    ],
)
def test_published_counts(name: str, options, n_standard: int, n_base: int) -> None:
    info = describe(robot_of(name), **options)
    assert (info.n_standard, info.n_base) == (n_standard, n_base)
    assert info.rank_gap > 1e6


@pytest.mark.parametrize(("leg", "n_base"), [(1, 14), (2, 14), (3, 15)])
def test_published_counts_of_the_legs_alone(leg: int, n_base: int) -> None:
    bodies = [f"{part}{leg}" for part in ("slider", "fork", "bar", "end", "twin")]
    info = describe(robot_of("orthoglide"), drive=("Ia", "Fv", "Fs"), bodies=bodies)
    # Gravity acts along the slide of leg 3 only.
    assert info.n_base == n_base


@pytest.mark.parametrize(
    ("name", "n_base"),
    [("dualv", 28), ("orthoglide", 43), ("evra", 122), *((name, n) for name, (_, _, n) in EXPECTED.items())],
)
def test_counts_and_names_do_not_depend_on_the_seed(name: str, n_base: int) -> None:
    robot = variant(robot_of(name))
    parameters = parameter_table(robot)
    order, known = considered_order(robot, parameters), known_columns(robot, parameters)
    found = {structural_base(robot, MODELS["inverse"], parameters, None).names}
    for seed in (1, 2, 3):
        factor = structural_factor(robot, parameters, None, seed=seed)
        found.add(base_set(parameters, factor, order, known).names)
    assert len(found) == 1
    assert len(found.pop()) == n_base


def relations(robot, columns) -> dict[str, dict[str, float]]:
    """What is grouped into each of these base parameters, with its coefficient."""
    base = structural_base(robot, MODELS["inverse"], parameter_table(robot), None)
    coefficients = base.coefficients()
    return {
        name: {other: value for (kept, other), value in coefficients.items() if kept == name}
        for name in columns
    }


def of_leg(leg: int, terms: dict[str, float]) -> dict[str, float]:
    return {f"{name}{leg}": value for name, value in terms.items()}


@pytest.mark.parametrize("leg", [1, 2])
def test_relations_of_a_leg_alone(leg: int) -> None:
    """(18) of the leg-symmetry paper; leg 3, along gravity, has the same space in other columns."""
    bodies = [f"{part}{leg}" for part in ("slider", "fork", "bar", "end", "twin")]
    robot = variant(robot_of("orthoglide"), drive=("Ia", "Fv", "Fs"), bodies=bodies)
    expected = {
        "Ia_slide": {"M_slider": 1, "M_fork": 1, "M_bar": 1, "M_end": 1, "M_twin": 1},
        "ZZ_fork": {"YY_bar": 1, "YY_end": 1, "YY_twin": 1, "M_end": D4**2},
        "MY_fork": {"MZ_bar": 1, "MZ_end": 1, "MZ_twin": 1},
        "XX_bar": {"YY_bar": -1, "XX_twin": 1, "YY_twin": -1, "M_end": -(D4**2)},
        "XY_bar": {"XY_twin": 1},
        "XZ_bar": {"MZ_end": -D4, "XZ_twin": 1},
        "YZ_bar": {"YZ_twin": 1},
        "ZZ_bar": {"ZZ_twin": 1, "M_end": D4**2},
        "MX_bar": {"MX_twin": 1, "M_end": D4},
        "MY_bar": {"MY_twin": 1},
    }
    found = relations(robot, [f"{name}{leg}" for name in expected])
    for name, terms in expected.items():
        # Rank is decided at 1e-13 of closed loops; 1e-9 leaves room for the condition number.
        assert found[f"{name}{leg}"] == pytest.approx(of_leg(leg, terms), abs=1e-9)


def test_relations_of_the_whole_robot() -> None:
    """(18) put into (19): the platform takes MX of the bars, and D4 appears everywhere."""
    robot = variant(robot_of("orthoglide"))
    expected = {
        "Ia_slide": {
            "M_slider": 1,
            "M_fork": 1,
            "M_bar": 1,
            "M_twin": 1,
            "MX_bar": -1 / D4,
            "MX_twin": -1 / D4,
        },
        "ZZ_fork": {"YY_bar": 1, "YY_end": 1, "YY_twin": 1, "MX_bar": -D4, "MX_twin": -D4},
        "XX_bar": {"YY_bar": -1, "XX_twin": 1, "YY_twin": -1, "MX_bar": D4, "MX_twin": D4},
        "XZ_bar": {"MZ_end": -D4, "XZ_twin": 1},
        "ZZ_bar": {"ZZ_twin": 1, "MX_bar": -D4, "MX_twin": -D4},
    }
    names = [f"{name}{leg}" for name in expected for leg in (1, 2, 3)]
    found = relations(robot, ["M_platform", *names])
    for leg in (1, 2, 3):
        for name, terms in expected.items():
            assert found[f"{name}{leg}"] == pytest.approx(of_leg(leg, terms), abs=1e-9)
    shared = {"MX_bar": 1 / D4, "MX_twin": 1 / D4, "M_end": 1}
    platform = {name: value for leg in (1, 2, 3) for name, value in of_leg(leg, shared).items()}
    assert found["M_platform"] == pytest.approx(platform, abs=1e-9)


def test_rows_of_a_redundant_robot() -> None:
    robot = robot_of("dualv")
    assert len(MODELS["inverse"].directions(robot).names) == 3
    assert MODELS["power"].directions(robot).names == ("power",)


@pytest.mark.parametrize("model", ["power", "inverse"])
def test_no_internal_tension_changes_the_equations(model: str) -> None:
    robot, motion, log = robot_of("dualv"), motion_of("dualv", 1), log_of("dualv", 1)
    Z = tension_directions(robot, motion.states(log.t).N)
    assert Z.shape == (len(log.t), 4, 1)
    # Continuous: between two samples of a smooth motion the direction hardly turns.
    assert np.abs(np.diff(Z, axis=0)).max() < 0.1
    rng = np.random.default_rng(0)
    strained = replace(log, tau=log.tau + 40.0 * Z[:, :, 0] * rng.normal(size=(len(log.t), 1)))

    def measured_sides(one):
        problem = prepare(robot, [one], Experiment(robot=robot, model=model, **OLS))
        source = problem.sources[0]
        start, stop = source.pieces()[0]
        rows = [packed.copy() for _, packed, _ in source.rows(start, stop, stop - start)]
        return rows[0][source.layout.start[1:] - 1]

    plain = measured_sides(log)
    # 40 N m of tension cancel to rounding; the tolerance is relative to the largest side.
    assert np.abs(measured_sides(strained) - plain).max() < 1e-9 * np.abs(plain).max()


@pytest.mark.parametrize(
    ("name", "model"),
    [("dualv", "power"), *((name, "inverse") for name in ("dualv", "orthoglide", "evra", *EXPECTED))],
)
def test_the_truth_is_found_without_noise(name: str, model: str) -> None:
    if name == "dualv":
        logs = [log_of(name, 1, 6.0), log_of(name, 2, 6.0, ("payload",))]
    else:
        logs = [log_of(name, 1), log_of(name, 2)]
    estimate = identified(name, logs, model)
    assert not estimate.not_identifiable
    assert name not in EXPECTED or len(estimate.parameters) == EXPECTED[name][2]
    assert estimate.truth is not None
    for parameter in estimate.parameters:
        # Rounding times the condition number, 1e4 on orthoglide; smaller ones than 1e-3 SI count as that.
        expected = estimate.truth[parameter.name]
        assert parameter.value == pytest.approx(expected, rel=1e-6, abs=1e-9), parameter.name
    if name == "dualv":
        values = {parameter.name: parameter.value for parameter in estimate.parameters}
        assert values["M_payload"] == pytest.approx(5.37, rel=1e-6)


def test_power_and_inverse_tell_the_same_base_parameters() -> None:
    logs = [log_of("dualv", 1, 6.0), log_of("dualv", 2, 6.0)]
    power, inverse = (identified("dualv", logs, model) for model in ("power", "inverse"))
    assert [p.name for p in power.parameters] == [p.name for p in inverse.parameters]
    assert [p.grouping for p in power.parameters] == [p.grouping for p in inverse.parameters]
    assert power.fit.rank == inverse.fit.rank == 28


def test_a_log_that_cannot_be_assembled_is_refused_with_the_place() -> None:
    log = log_of("orthoglide", 1)
    far = log.q.copy()
    far[200:, 0] += np.minimum(np.arange(len(far) - 200) / 100.0, 1.0)  # the bars are 0.31 m long
    broken = replace(log, q=far, dq=None, ddq=None)
    with pytest.raises(InputError, match=r"do not close the loops: at sample 2\d\d .* is off by"):
        identify_logs(robot_of("orthoglide"), [broken])


def test_a_wrong_zero_shows_where_more_joints_are_measured_than_needed() -> None:
    log = log_of("dualv", 1)
    q = log.q + np.array([0.0, 0.3, 0.0, 0.0])
    with pytest.raises(InputError, match=r"do not close the loops: at sample \d+ .* is off by"):
        identify_logs(robot_of("dualv"), [replace(log, q=q, dq=None, ddq=None)])
