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


@pytest.mark.parametrize("count", [4, 8])
@pytest.mark.parametrize("kind", ["old row", "zeros", "one encoder", "not a number"])
def test_37_lost_rows_are_bridged(kind: str, count: int) -> None:
    """Packets that are lost for up to 16 ms: the motion goes on, and only their equations are missing."""
    t, q, tau = signals()
    q = np.round(q * 2e4) / 2e4
    lost_q, lost_tau = q.copy(), tau.copy()
    # Both joints move there: an error of the position below 1/500 of its range is not searched.
    speed = np.abs(np.gradient(q, 1.0 / RATE, axis=0)).min(axis=1)
    places = [a for a in range(100, len(t) - 100, 150) if speed[a : a + count].min() > 0.8]
    assert len(places) > 3
    for a in places:
        rows = slice(a, a + count)
        if kind == "zeros":
            lost_q[rows], lost_tau[rows] = 0.0, 0.0
        elif kind == "old row":
            lost_q[rows], lost_tau[rows] = q[a - 1], tau[a - 1]
        else:
            lost_q[rows, 1] = np.nan if kind == "not a number" else q[a - 1, 1]
    log = log_from_arrays(arm(), t, lost_q, lost_tau)
    rows = np.concatenate([np.arange(a, a + count) for a in places])
    assert log.segments == ((0, len(t)),)
    np.testing.assert_allclose(log.q, q, atol=2e-4)  # four steps of the encoder
    assert not log.valid[rows].any()
    assert np.mean(~log.valid) < 1.2 * len(rows) / len(t)
    assert "position-step" not in codes(log)


def test_37_frozen_for_longer_than_the_motion_allows_splits_the_log() -> None:
    t, q, tau = signals()
    q[1000:1200] = q[999]  # 0.4 s
    log = log_from_arrays(arm(), t, q, tau)
    assert "samples-repeated" in codes(log)
    assert len(log.segments) == 2
    assert not log.valid[1001:1199].any()


def test_37_rests_of_an_encoder_are_no_lost_samples() -> None:
    """Point to point with short rests: the encoder repeats its value, and the motion says that it does."""
    for rate in (50.0, 250.0, 2000.0):
        t = np.arange(round(12.0 * rate)) / rate
        s = np.clip((t % 1.5) / 1.2, 0.0, 1.0)
        even = (t // 1.5).astype(int) % 2 == 0
        s = np.where(even, s, 1.0 - s)
        q = np.column_stack([0.8 * s**3 * (10.0 - 15.0 * s + 6.0 * s**2), 0.3 * s**2 * (3.0 - 2.0 * s)])
        q = np.round(q * 2e3) / 2e3
        tau = 10.0 * q + 0.05 * np.random.default_rng(0).standard_normal(q.shape)
        log = log_from_arrays(arm(), t, q, tau)
        assert "samples-repeated" not in codes(log), rate
        assert np.array_equal(log.q, q)


def test_37_efforts_that_are_updated_more_slowly_are_not_masked() -> None:
    t, q, tau = signals()
    slow = tau[(np.arange(len(t)) // 10) * 10]
    assert "stuck-signal" not in codes(log_from_arrays(arm(), t, q, slow))
    lost = tau.copy()
    lost[1000:1006] = 0.0
    log = log_from_arrays(arm(), t, q, lost)
    assert np.array_equal(np.flatnonzero(~log.valid), np.arange(1000, 1006))


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
