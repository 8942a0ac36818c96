"""Faults of sensors are found, masked and told; clean signals and real ones are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.motion.fault_scan import facts, flat_tops, spikes
from dynid.motion.logs import log_from_arrays
from tests.arms import arm, motion
from tests.built_in import codes

RATE = 500.0


def signals(seed: int = 0, seconds: float = 6.0, noise: float = 0.05):
    """Time, positions and noisy efforts of a two-joint arm."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * RATE)) / RATE
    q, dq, ddq = motion(t)
    tau = 2.0 * ddq + 0.5 * dq + 0.8 * np.sign(dq)
    return t, q, tau + noise * rng.standard_normal(tau.shape)


def test_a_clean_log_with_coulomb_friction_raises_nothing() -> None:
    for seed in range(20):
        t, q, tau = signals(seed)
        log = log_from_arrays(arm(), t, q, tau)
        assert codes(log) == []
        assert log.valid.all()


def test_37_spikes_of_efforts_are_masked_and_counted() -> None:
    t, q, tau = signals()
    rng = np.random.default_rng(1)
    at = np.sort(rng.choice(np.arange(20, len(t) - 20, 25), 15, replace=False))
    tau[at, 1] += rng.choice([-1, 1], 15) * 30.0
    log = log_from_arrays(arm(), t, q, tau)
    assert codes(log) == ["effort-spikes"]
    assert "tau_2 (15)" in log.notices[0].text
    assert np.array_equal(np.flatnonzero(~log.valid), at)
    assert len(log.segments) == 1  # only rows are lost, not the filter's reach around them


def test_37_lost_torque_samples_are_masked() -> None:
    """2 % of the torques zero: those lost where the torque is large are found."""
    t, q, tau = signals()
    rng = np.random.default_rng(2)
    lost = rng.random(len(t)) < 0.02
    tau[lost, 0] = 0.0
    clean = signals()[2]
    large = lost & (np.abs(clean[:, 0]) > 2.0)
    log = log_from_arrays(arm(), t, q, tau)
    assert "effort-spikes" in codes(log)
    # Another loss two or three samples away hides both: 8 % of them at a loss of 2 %.
    assert np.mean(~log.valid[large]) > 0.85
    assert np.mean(~log.valid[~lost]) < 0.002


def test_37_positions_that_jump_and_return_are_filled() -> None:
    """Lost packets: zeros, some beside each other; the log was split into pieces too short to use."""
    t, q, tau = signals()
    rng = np.random.default_rng(6)
    alone = rng.choice(np.arange(20, len(t) - 40, 25), 40, replace=False)
    # Two or three in a row, and two with a good sample or two between them.
    together = np.array([201, 202, 406, 407, 408, 611, 613, 816, 819])
    at = np.union1d(alone, [*together, 2, len(t) - 3])
    at = at[np.abs(q[at, 0]) > 0.1]  # a zero beside others is none
    jumping = q.copy()
    jumping[at, 0] = 0.0
    log = log_from_arrays(arm(), t, jumping, tau)
    assert codes(log) == ["position-spikes"]
    assert f"q_1 ({len(at)}, first at t = {t[at[0]]:.4g} s)" in log.notices[0].text
    assert log.segments == ((0, len(t)),)
    assert np.array_equal(np.flatnonzero(~log.valid), at)
    # A cubic over at most four steps of 2 ms is far better than the noise of any encoder.
    np.testing.assert_allclose(log.q, q, atol=1e-6)
    assert np.array_equal(jumping[at, 0], np.zeros(len(at))), "the caller's array was changed"


def test_37_saturation_is_masked_and_reported() -> None:
    t, q, tau = signals()
    limit = 0.6 * np.abs(tau[:, 0]).max()
    tau[:, 0] = np.clip(tau[:, 0], -limit, limit)
    log = log_from_arrays(arm(), t, q, tau)
    assert "saturation" in codes(log)
    assert np.array_equal(~log.valid, np.abs(tau[:, 0]) == limit)


def test_37_a_sensor_that_hangs_is_reported() -> None:
    t, q, tau = signals()
    tau[1000:1600, 1] = tau[1000, 1]
    log = log_from_arrays(arm(), t, q, tau)
    assert "stuck-signal" in codes(log)
    assert "tau_2 (1.2 s)" in next(n.text for n in log.notices if n.code == "stuck-signal")
    assert not log.valid[1000:1600].any()
    assert log.valid[:999].all()
    assert log.valid[1601:].all()


def test_37_an_encoder_that_hangs_is_masked_and_a_joint_at_rest_is_not() -> None:
    t, q, tau = signals()
    hung = q.copy()
    hung[1000:1600, 0] = hung[1000, 0]
    log = log_from_arrays(arm(), t, hung, tau)
    assert "q_1 (1.2 s)" in next(n.text for n in log.notices if n.code == "stuck-signal")
    assert len(log.segments) == 2
    assert not log.valid[(log.t > t[1005]) & (log.t < t[1595])].any()
    # It slows down, rests and goes on gently: a joint beside others that move.
    rest = q.copy()
    s = np.clip((t - 2.0) / 0.5, 0.0, 1.0) - np.clip((t - 4.0) / 0.5, 0.0, 1.0)
    smooth = s * s * (3.0 - 2.0 * s)
    rest[:, 0] = 0.3 + (1.0 - smooth) * 0.2 * np.sin(t) ** 2
    log = log_from_arrays(arm(), t, rest, tau)
    told = [n.text for n in log.notices if n.code == "stuck-signal"]
    assert log.valid.all()
    assert len(told) == 1
    assert "are used" in told[0]


def test_37_coarse_efforts_are_reported() -> None:
    t, q, tau = signals()
    tau[:, 0] = np.round(tau[:, 0] / 4.0) * 4.0
    log = log_from_arrays(arm(), t, q, tau)
    assert codes(log) == ["coarse-effort"]
    assert log.valid.all()


def test_an_irregular_clock_keeps_the_mask() -> None:
    t, _, tau = signals()
    rng = np.random.default_rng(3)
    jittered = t + 0.1 / RATE * rng.uniform(-1, 1, len(t))
    tau[700, 0] += 40.0
    log = log_from_arrays(arm(), jittered, motion(jittered)[0], tau)
    assert "effort-spikes" in codes(log)
    hidden = log.t[~log.valid]
    assert len(hidden) >= 1
    # The resampled neighbours of the spike, not more.
    assert np.all(np.abs(hidden - jittered[700]) < 1.0 / RATE)


@pytest.mark.parametrize("shape", ["step", "decay", "burst"])
def test_what_lasts_is_no_spike(shape: str) -> None:
    rng = np.random.default_rng(4)
    x = 0.05 * rng.standard_normal(2000) + np.sin(np.arange(2000) / 100)
    if shape == "step":
        x[1000:] += 5.0
    elif shape == "decay":
        x[1000:1050] += 5.0 * np.exp(-np.arange(50) / 10)
    else:
        x[1000:1040] += 5.0
    (known,) = facts(x[:, None], ["x"])
    for smooth in (False, True):
        assert not len(spikes(x[:, None], [known], 0.0, smooth=smooth)[0])


def test_a_signal_that_touches_its_extreme_once_is_not_flat() -> None:
    x = np.sin(np.arange(5000) / 200) + 0.01 * np.random.default_rng(5).standard_normal(5000)
    assert flat_tops(x[:, None], facts(x[:, None], ["x"])) == [None]
