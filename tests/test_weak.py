"""Parameters are weak by what their uncertainty does along other motion, not by each sigma alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.checks.check import Finished
from dynid.checks.estimate import other_motion, weak
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit, fit_task
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.motion.logs import log_from_arrays
from dynid.motion.settings import FilterSettings
from dynid.simulation.prescribed import inverse_efforts
from dynid.unknown import Task
from tests.arms import arm

_RATE = 200.0
_T = np.arange(0.0, 10.0, 1.0 / _RATE)


def fit_of(robot: Mechanism, truth: dict[str, float], motion, noise: float) -> Fit:
    """The fit of a log along q, dq, ddq with white noise in the efforts."""
    q, dq, ddq = (np.column_stack(columns) for columns in motion)
    zeros = dict.fromkeys((parameter.name for parameter in parameter_table(robot)), 0.0)
    tau = inverse_efforts(robot, zeros | truth, q, dq, ddq)
    tau = tau + noise * np.random.default_rng(1).standard_normal(tau.shape)
    log = log_from_arrays(robot, _T, q, tau)
    return fit_task(Task(robot, (log,), Experiment(robot=robot, auto="off")))


def sine(size: float, hertz: float, phase: float = 0.0):
    """q, dq, ddq."""
    w = 2.0 * np.pi * hertz
    angle = w * _T + phase
    return size * np.sin(angle), size * w * np.cos(angle), -size * w * w * np.sin(angle)


def test_a_pair_whose_sum_is_known_is_not_weak() -> None:
    """Speeds between 0.95 and 1.05 rad/s do not separate Fv from Fs, and nothing in their range needs it."""
    robot = replace(arm(1), drive={"motor1": ("Fv", "Fs")})
    q, dq, ddq = sine(0.05 / (2.0 * np.pi), 1.0)
    spin = ([_T + q], [1.0 + dq], [ddq])
    fit = fit_of(robot, {"ZZ_link1": 1.0, "Fv_motor1": 0.1, "Fs_motor1": 2.0}, spin, 0.3)
    viscous = next(one for one in fit.parts.parameters if one.name == "Fv_motor1")
    assert viscous.sigma_rel_percent > 100.0
    # Three parameters from some 2000 samples with noise of a tenth of the effort.
    assert 0.0 < other_motion(fit)[0]["motor1"] < 0.02
    assert not list(weak(Finished(fit)))


def test_what_only_other_motion_needs_is_weak() -> None:
    """The second link hardly turns in space: its inertia is lost, and other motion needs it."""
    robot = arm(2)
    first, small = sine(0.8, 0.5), sine(0.0002, 0.7)
    motion = [[a, -a + b] for a, b in zip(first, small, strict=True)]
    fit = fit_of(robot, {"ZZ_link1": 1.0, "ZZ_link2": 0.5}, motion, 0.2)
    assert max(other_motion(fit)[0].values()) > 0.05
    (warning,) = weak(Finished(fit))
    assert warning.code == "weak-parameters"
    assert "ZZ_link2" in warning.text


@pytest.mark.parametrize(("rate", "seconds", "cutoff"), [(10_000.0, 3.0, 10.0), (200.0, 10.0, 0.5)])
def test_logs_sampled_fast_or_filtered_slowly_are_judged(rate: float, seconds: float, cutoff: float) -> None:
    """Ends of some thousand samples are cut: another motion of 2000 samples would have none left."""
    robot = arm(2)
    t = np.arange(0.0, seconds, 1.0 / rate)
    q = np.column_stack([np.sin(2.0 * np.pi * 0.7 * t), 0.6 * np.cos(2.0 * np.pi * 1.1 * t)])
    tau = 0.5 * np.cos(q) + 0.1 * np.random.default_rng(3).standard_normal(q.shape)
    log = log_from_arrays(robot, t, q, tau)
    settings = Experiment(robot=robot, auto="off", filter=FilterSettings(cutoff=cutoff))
    fit = fit_task(Task(robot, (log,), settings))
    list(weak(Finished(fit)))  # does not fail
    other = other_motion(fit)
    assert (other is None) == (cutoff < 1.0)  # of ten seconds filtered at half a hertz no other is left
