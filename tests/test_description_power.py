"""Small errors of a description in short logs: found, separated, and not invented."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.checks.moderated import usual_factor
from dynid.checks.residuals import check_residuals
from dynid.common.distributions import inverse_trigamma
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import linear_fit
from dynid.mechanism.description import at_values
from dynid.mechanism.load import load_robot
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs
from dynid.problem import prepare
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import NOT_TESTED, ResidualTest
from dynid.validation.branches import other_poses
from dynid.validation.hypotheses import delays
from dynid.validation.ranking import _evidence
from dynid.validation.unseen import _level

pytestmark = pytest.mark.usefixtures("no_symbols")


def recorded(robot: str, seed: int):
    """A robot and a log of 5 s with the noise of its demo."""
    mechanism = load_robot(robot)
    demo = read_demo(demo_file(robot), mechanism)
    motion = random_motion(mechanism, seed=seed, harmonics=5, frequency=0.2, draws=2)
    log = simulate_log(
        mechanism,
        demo.truth,
        motion,
        rate=250.0,
        duration=motion.period,
        encoder_resolution=demo.encoder,
        torque_sigma=demo.torque_sigma,
        seed=seed,
    )
    return mechanism, log


@pytest.fixture(scope="module")
def arm():
    return recorded("ur5", 3)


def answers(mechanism, log):
    """Answers of the linear tests."""
    experiment = Experiment(robot=mechanism, auto="off")
    problem = prepare(mechanism, [log], experiment)
    fit = linear_fit(problem, experiment)
    return check_residuals(fit)


def test_a_wrong_length_in_a_short_log_is_named_with_its_size(arm) -> None:
    """5 cm of the upper arm: the residual rises by little, because the parameters follow."""
    mechanism, log = arm
    true = mechanism.geometry["x_elbow_joint"]
    wrong = at_values(mechanism, {"x_elbow_joint": true + 0.05})
    estimate = identify_logs(wrong, [log], experiment=Experiment(robot=wrong, auto="off"))
    first = estimate.hypotheses[0]
    assert first.name.startswith("dimension x_elbow_joint")
    assert first.p < 1e-3
    test = next(one for one in estimate.residual_tests if one.about == "x_elbow_joint")
    # The linear size has its interval; the model is not linear over 5 cm: a third of it.
    assert test.value == pytest.approx(-0.05, rel=0.34)
    assert [one.code for one in estimate.warnings].count("dimension-off") == 1


def test_tests_of_clean_logs_have_the_level_that_they_state(arm) -> None:
    """Suspects of a clean log: p below 0.1 in about a tenth, none below the limit."""
    tests = [
        one
        for seed in (3, 4)
        for one in answers(*(arm if seed == 3 else recorded("ur5", seed)))
        if isinstance(one, ResidualTest) and one.test != "white"
    ]
    share = float(np.mean([one.p_value < 0.1 for one in tests]))
    # Some 60 tests, not independent: a binomial deviation of 0.04, doubled for their correlation.
    assert share < 0.1 + 2.0 * 2.0 * 0.04
    assert not any(one.warned for one in tests)


def test_what_no_log_can_show_is_said_once_by_kind(arm) -> None:
    """The zero of a vertical first axis moves nothing."""
    (untested,) = (text for name, text in _choices(answers(*arm)) if name == NOT_TESTED)
    assert "zero of shoulder_pan_joint" in untested
    assert untested.count("zero of") == 1


def _choices(found) -> Iterator[tuple[str, str]]:
    return (one for one in found if isinstance(one, tuple) and not isinstance(one, (Notice, ResidualTest)))


def test_variances_of_many_suspects_are_averaged_as_far_as_they_agree() -> None:
    rng = np.random.default_rng(0)
    dof = np.full(400, 8.0)
    alike = rng.chisquare(8.0, 400) / 8.0
    factor, free = usual_factor(list(3.0 * alike), list(dof))
    # Mean of 400 values with a relative deviation of 0.5: 0.025; four of them.
    assert factor == pytest.approx(3.0, rel=0.1)
    assert free > 100.0
    different = alike * np.exp(2.0 * rng.standard_normal(400))
    # The logarithm varies by 4: psi'(d/2) = 4 at d = 1.1.
    assert usual_factor(list(different), list(dof))[1] == pytest.approx(1.1, rel=0.3)
    assert usual_factor([1.0, 2.0], [5.0, 5.0]) == (1.0, 0.0)


def test_the_inverse_of_the_trigamma_function() -> None:
    from scipy.special import polygamma

    for x in (0.05, 0.5, 3.0, 200.0):
        assert inverse_trigamma(float(polygamma(1, x))) == pytest.approx(x, rel=1e-6)


def test_evidence_continues_where_probabilities_underflow() -> None:
    below, above = _evidence(700.0, 3), _evidence(800.0, 3)
    # 100 more, less what the factor sqrt(l) gains.
    assert above - below == pytest.approx(100.0, abs=0.2)
    # A given shift by d sigma, d^2 = 2 l: the upper tail of a normal variable beyond d.
    given = -np.log(0.5 * math.erfc(math.sqrt(10.0) / math.sqrt(2.0)))
    assert _evidence(5.0, 0) == pytest.approx(given, rel=1e-9)  # rounding of two implementations
    assert _evidence(-1.0, 2) == 0.0


def test_shifted_efforts_keep_their_noise(arm) -> None:
    """Half a sample between two values would average their noise, and fit better than the truth."""
    mechanism, log = arm
    rng = np.random.default_rng(1)
    noise = replace(log, tau=rng.standard_normal(log.tau.shape))
    test = ResidualTest("delay", "all efforts", 2.5 * log.dt, "s", None, 1e-9, True)
    (shifted,) = next(delays(mechanism, (noise,), [test])).logs
    inside = slice(40, -40)
    # A window of 65 samples passes 97 % of the power of white noise; 7000 values have a deviation of 0.01.
    assert np.std(shifted.tau[inside]) == pytest.approx(0.985, abs=0.03)
    slow = replace(log, tau=np.repeat(np.sin(3.0 * log.t)[:, None], log.tau.shape[1], axis=1))
    (moved,) = next(delays(mechanism, (slow,), [test])).logs
    assert moved.tau[inside, 0] == pytest.approx(np.sin(3.0 * (log.t + 2.5 * log.dt))[inside], abs=1e-4)


def test_links_turned_about_their_own_line_are_no_other_branch() -> None:
    """Sixteen poses of an orthoglide differ by half turns of its legs; one has the platform elsewhere."""
    from dynid.kinematics.assembly import assembly_of

    mechanism, log = recorded("orthoglide", 3)
    here, others = other_poses(assembly_of(mechanism), log)
    assert len(others) <= 1
    assert all(np.abs(pose - here).max() > 0.05 for pose in others)


def test_loops_that_another_length_closes_are_refused_with_that_length() -> None:
    """Legs of an orthoglide that are 2 cm too short for some poses."""
    mechanism, log = recorded("orthoglide", 3)
    described = at_values(mechanism, {"D4": mechanism.geometry["D4"] - 0.02})
    with pytest.raises(InputError, match="The loops close with: dimension D4"):
        identify_logs(described, [log], experiment=Experiment(robot=described, auto="off"))


def test_a_zero_that_leads_near_singular_poses_is_found() -> None:
    """10 mm off, the poses of a log come so near a singular one that no derivative is valid there."""
    mechanism = load_robot("orthoglide")
    demo = read_demo(demo_file("orthoglide"), mechanism)
    motion = random_motion(
        mechanism, seed=977 * 705, harmonics=demo.harmonics, frequency=demo.frequency, draws=3
    )
    log = simulate_log(
        mechanism,
        demo.truth,
        motion,
        rate=250.0,
        duration=max(1, round(5.0 * demo.frequency)) * motion.period,
        encoder_resolution=demo.encoder,
        torque_sigma=demo.torque_sigma,
        seed=977 * 705 + 6,
    )
    wrong = log_from_arrays(mechanism, log.t, log.q - [0.01, 0.0, 0.0], log.tau)
    estimate = identify_logs(mechanism, (wrong,), experiment=Experiment(robot=mechanism, auto="off"))
    assert estimate.hypotheses[0].name.startswith("zero of 'slide1'")
    (test,) = (one for one in estimate.residual_tests if (one.test, one.about) == ("zero", "slide1"))
    assert test.ci95 is not None
    assert test.ci95[0] < 0.01 < test.ci95[1]


def test_gravity_that_a_loop_nearly_absorbs_is_found() -> None:
    """The parameters of a slider-crank leave 1.3 times the noise with gravity upside down."""
    folder = Path(__file__).parents[1] / "benchmarks"
    mechanism = load_robot(folder / "slidercrank.yaml")
    demo = read_demo(folder / "slidercrank.demo.yaml", mechanism)
    motion = random_motion(mechanism, seed=31, harmonics=5, frequency=0.4, draws=2)
    log = simulate_log(
        mechanism,
        demo.truth,
        motion,
        rate=250.0,
        duration=2.0 * motion.period,
        encoder_resolution=demo.encoder,
        torque_sigma=demo.torque_sigma,
        seed=31,
    )
    for described, first in (
        (-mechanism.gravity, "gravity [0, -9.81, 0]"),
        (mechanism.gravity, "as described"),
    ):
        robot = replace(mechanism, gravity=described)
        estimate = identify_logs(robot, (log,), experiment=Experiment(robot=robot, auto="off"))
        assert estimate.hypotheses[0].name == first


def test_noise_that_changes_its_size_has_the_rms_of_all() -> None:
    """Noise of a motor times its speed: the median of all samples is that of slow motion."""
    rng = np.random.default_rng(4)
    size = np.abs(np.sin(np.linspace(0.0, 12.0, 4000)))
    level = _level(np.abs(size * rng.standard_normal((2, 4000))), 64)
    assert level / 0.6745 == pytest.approx(np.full(2, np.sqrt(np.mean(size**2))), rel=0.05)
    alike = _level(np.abs(rng.standard_normal((1, 4000))), 64)
    assert alike / 0.6745 == pytest.approx(np.ones(1), rel=0.05)
    assert _level(np.full((1, 200), np.nan), 64) == pytest.approx(np.zeros(1))
