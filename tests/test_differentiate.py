"""Filters and derivatives: orders of accuracy, chunks equal to the whole, segments kept apart."""

from itertools import pairwise
from typing import get_args

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.motion.differentiate import differentiate
from dynid.motion.filters import extend_odd, low_pass
from dynid.motion.logs import log_from_arrays
from dynid.motion.motion import Motion, at_rest, near_reversal
from dynid.motion.plan import plan_motions
from dynid.motion.settings import Derivative
from dynid.motion.settings import FilterSettings as Filter
from dynid.motion.settings import MaskSettings as Mask
from tests.arms import arm, motion

ORDERS = {"central3": (2, 2), "central5": (4, 4), "central7": (6, 6), "spline": (6, 4)}


def long_log(seconds=20.0, rate=250.0, velocities=False, segments=None, noise=1e-5):
    rng = np.random.default_rng(3)
    t = np.arange(round(seconds * rate)) / rate
    q, dq, ddq = motion(t)
    q = q + noise * rng.standard_normal(q.shape)
    return log_from_arrays(arm(), t, q, ddq, dq=dq if velocities else None, segments=segments)


def planned(log, **settings):
    return Motion(log, plan_motions([log], arm(), Filter(**settings), Mask())[0])


@pytest.mark.parametrize("kind", get_args(Derivative))
@pytest.mark.parametrize("order", [1, 2])
def test_derivative_has_its_order_of_accuracy(kind, order):
    errors = []
    for n in (64, 128):
        t = np.arange(n) / n
        x = np.sin(2 * np.pi * t)[:, None]
        truth = (2 * np.pi) ** order * np.sin(2 * np.pi * t + order * np.pi / 2)
        inner = slice(n // 4, 3 * n // 4)
        errors.append(np.max(np.abs(differentiate(x, 1 / n, kind, order=order)[inner, 0] - truth[inner])))
    # Halving the step gains 2^p; 0.25 allows for the next term of the series.
    assert np.log2(errors[0] / errors[1]) == pytest.approx(ORDERS[kind][order - 1], abs=0.25)


def test_derivative_is_exact_on_polynomials():
    t = np.arange(40) * 0.1
    x = np.column_stack([t**2, t**4, t**6])
    dx = np.column_stack([2 * t, 4 * t**3, 6 * t**5])
    for kind, exact in {"central3": 1, "central5": 2, "central7": 3}.items():
        found = differentiate(x, 0.1, kind)[6:-6, :exact]
        # Rounding of values up to 4e3 divided by the step.
        assert np.allclose(found, dx[6:-6, :exact], rtol=1e-10, atol=1e-9)


def test_unknown_derivative_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match="did you mean 'central5'"):
        differentiate(np.zeros((9, 1)), 0.1, "central_5")


@pytest.mark.parametrize("kind", ["butterworth", "fir"])
def test_low_pass_has_no_phase_and_half_amplitude_at_the_cutoff(kind):
    rate, cutoff = 1000.0, 20.0
    t = np.arange(8000) / rate
    x = np.column_stack([np.sin(2 * np.pi * f * t) for f in (4.0, cutoff, 100.0)])
    y = low_pass(kind, cutoff, 4, 1 / rate)[0](x)[2000:6000]
    x = x[2000:6000]
    gain = np.sum(x * y, axis=0) / np.sum(x * x, axis=0)
    quadrature = np.sqrt(np.mean((y - gain * x) ** 2, axis=0))
    # Bilinear warping and the FIR's ripple move the gain by less than half a per cent.
    assert gain == pytest.approx([1.0, 0.5, 0.0], abs=5e-3)
    assert np.all(quadrature < 1e-3)  # windows hold whole periods; what is left is ripple


def test_low_pass_refuses_a_cutoff_beyond_half_the_rate():
    with pytest.raises(InputError, match="half the sampling rate"):
        low_pass("butterworth", 600.0, 4, 1e-3)
    with pytest.raises(InputError, match="did you mean 'butterworth'"):
        low_pass("buterworth", 6.0, 4, 1e-3)


def test_odd_extension_keeps_value_and_slope():
    x = np.linspace(1.0, 2.0, 11)[:, None]
    assert np.allclose(extend_odd(x, 3)[:, 0], np.linspace(0.7, 2.3, 17), atol=1e-15)
    assert len(extend_odd(x[:3], 5)) == 13


@pytest.mark.parametrize("velocities", [False, True])
@pytest.mark.parametrize("derivative", ["central5", "spline"])
@pytest.mark.parametrize("kind", ["butterworth", "fir", "none"])
def test_chunks_equal_the_whole_segment(kind, derivative, velocities, monkeypatch):
    log = long_log(velocities=velocities)
    mover = planned(log, kind=kind, cutoff=8.0, derivative=derivative)
    start, stop = mover.log.segments[0]
    whole = mover.states(start, stop)
    assert mover.states(700, 701)[0].base is whole[0].base  # a short log is processed once
    monkeypatch.setattr("dynid.motion.motion.LARGE", 0)
    cuts = [start, 700, 701, 1500, 3000, stop]
    for a, b in pairwise(cuts):
        for part, full in zip(mover.states(a, b), whole, strict=True):
            # The promise of Motion.states: the filter has forgotten the chunk's ends to 1e-9.
            assert np.allclose(part, full[a:b], rtol=1e-9, atol=1e-9 * np.max(np.abs(full)))


def test_filter_settings_change_the_result():
    log = long_log(velocities=True, noise=1e-3)
    reference = planned(log, cutoff=5.0).states(500, 900)
    variants = [
        {"cutoff": 10.0},
        {"cutoff": 5.0, "order": 2},
        {"cutoff": 5.0, "kind": "fir"},
        {"cutoff": 5.0, "kind": "none"},
        {"cutoff": 5.0, "derivative": "central3"},
        {"cutoff": 5.0, "velocity": "derived"},
    ]
    for variant in variants:
        other = planned(log, **variant).states(500, 900)
        # Any real difference: far above rounding of accelerations of about 10.
        assert np.max(np.abs(other[2] - reference[2])) > 1e-9, variant


def test_accelerations_of_smooth_motion_are_right():
    log = long_log(noise=0.0)
    mover = planned(log, cutoff=20.0)
    (a, b), *_ = mover.usable()
    truth = motion(log.t[a:b])
    for found, exact in zip(mover.states(a, b), truth, strict=True):
        # What the cut edges leave of the extension's false curvature: 0.3 % at one end, 1 % where
        # the acceleration is at its peak when the log ends.
        assert np.max(np.abs(found - exact)) < 1.5e-2 * np.max(np.abs(exact))
        inner = slice(200, -200)
        # At 0.65 Hz the low-pass takes (0.65/20)^8 = 1e-12, the 7-point formula 1e-10.
        assert np.max(np.abs(found - exact)[inner]) < 1e-6 * np.max(np.abs(exact))


def test_nothing_is_filtered_across_segments():
    cut = 2500
    two = long_log(segments=[(0, cut), (cut, 5000)])
    assert two.segments == ((0, cut), (cut, 5000))
    alone = long_log(segments=[(0, cut)])
    both, one = planned(two, cutoff=5.0), planned(alone, cutoff=5.0)
    for x, y in zip(both.states(0, cut), one.states(0, cut), strict=True):
        # The step is the mean of other samples: its rounding, amplified by two derivatives.
        assert np.allclose(x, y, rtol=1e-9, atol=1e-9)
    with pytest.raises(InputError, match="inside one segment"):
        both.states(cut - 5, cut + 5)
    edge = both.plan.edge
    assert both.usable() == ((edge, cut - edge), (cut + edge, 5000 - edge))


def test_measured_velocity_is_low_passed_and_differentiated():
    log = long_log(velocities=True)
    mover = planned(log, cutoff=10.0, velocity="measured", derivative="central7")
    _, dq, ddq = mover.states(1000, 1200)
    smooth = mover.low_pass[0](log.dq)
    # The same operations on the whole log, equal to what the chunk's padding forgets.
    assert np.allclose(dq, smooth[1000:1200], rtol=1e-9, atol=1e-9)
    assert np.allclose(ddq, differentiate(smooth, log.dt)[1000:1200], rtol=1e-9, atol=1e-8)


def test_given_acceleration_is_used_with_measured_velocity():
    t = np.arange(2000) / 250.0
    q, dq, ddq = motion(t)
    log = log_from_arrays(arm(), t, q, ddq, dq=dq, ddq=ddq + 1.0)
    mover = planned(log, cutoff=10.0, velocity="measured")
    # An offset of 1 that no derivative of dq has; the low-pass passes it whole.
    assert np.mean(mover.states(900, 1100)[2] - ddq[900:1100]) == pytest.approx(1.0, abs=1e-6)


def test_near_reversal_widens_around_slow_samples_and_sign_changes():
    dq = np.array([3.0, 2.0, 1.0, 0.1, -1.0, -2.0, -3.0])[:, None]
    slow = np.array([0.5])
    assert near_reversal(dq, slow, 0)[:, 0].tolist() == [False, False, False, True, False, False, False]
    assert near_reversal(dq, slow, 1)[:, 0].tolist() == [False, False, True, True, True, True, False]
    assert not near_reversal(dq, np.zeros(1), 0).any()


def test_rest_needs_all_coordinates_slow_for_the_whole_window():
    dq = np.ones((20, 2))
    dq[3:9] = 0.0
    dq[12:14] = 0.0
    dq[15:20, 0] = 0.0
    resting = at_rest(dq, np.array([0.1, 0.1]), 4)
    assert np.flatnonzero(resting).tolist() == [3, 4, 5, 6, 7, 8]


def test_weights_do_not_depend_on_the_chunks(monkeypatch):
    t = np.arange(4000) / 250.0
    q, _, ddq = motion(t)
    q[1500:2200] = q[1500]  # at rest for 2.8 s (with a jump after it, which is no matter here)
    log = log_from_arrays(arm(), t, q, ddq)
    plan = plan_motions([log], arm(), Filter(cutoff=8.0), Mask(speed=0.05, around=7))[0]
    mover = Motion(log, plan)
    (a, b), *_ = mover.usable()
    whole = mover.weighted(a, b)[1]
    monkeypatch.setattr("dynid.motion.motion.LARGE", 0)
    for start in range(a, b, 311):
        stop = min(b, start + 311)
        part = mover.weighted(start, stop)[1]
        assert np.array_equal(part, whole[start - a : stop - a])
    assert not whole[1700 - a : 2000 - a].any()
    assert 0.2 < whole.mean() < 0.95
