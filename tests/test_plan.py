"""What the data choose, and that the settings win where they speak."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.motion.choose import spectra_of
from dynid.motion.logs import log_from_arrays, read_log
from dynid.motion.motion import Motion
from dynid.motion.plan import plan_motions
from dynid.motion.settings import ColumnMap as Column
from dynid.motion.settings import FilterSettings as Filter
from dynid.motion.settings import MaskSettings as Mask
from dynid.motion.spectrum import cutoff_of, spectrum
from tests.arms import arm, motion, platform

DATA = Path(__file__).parents[2] / "shared" / "data"


def noisy(rate=500.0, seconds=16.0, noise=1e-4, seed=0, velocities=False):
    rng = np.random.default_rng(seed)
    t = np.arange(round(rate * seconds)) / rate
    q, dq, ddq = motion(t)
    q = q + noise * rng.standard_normal(q.shape)
    return log_from_arrays(arm(), t, q, ddq, dq=dq if velocities else None)


def test_noise_floor_and_bandwidth_are_found():
    log = noisy(noise=2e-4)
    found = spectrum(log.q, log.dt)
    # A median over thousands of periodogram bins, averaged over few windows: within 10 %.
    assert found.sigma == pytest.approx([2e-4, 2e-4], rel=0.1)
    # Sines up to 0.65 Hz, seen through a Hann window of 8 s (main lobe +- 0.25 Hz).
    assert np.all((found.bandwidth > 0.5) & (found.bandwidth < 1.0))
    assert found.moving.all()


def test_cutoff_follows_the_motion_and_is_reported():
    plan = plan_motions([noisy()], arm(), Filter(), Mask())[0]
    assert plan.cutoff is not None
    assert 3.0 <= plan.cutoff <= 10.0
    assert "chosen: motion bandwidth" in plan.choices["low-pass on coordinates"]
    kept = 500.0 / plan.decimate
    assert 2.5 * plan.cutoff <= kept <= 5.5 * plan.cutoff
    assert plan.rows_cutoff == pytest.approx(0.8 * kept / 2)
    assert plan.edge * plan.dt == pytest.approx(2.0 / plan.cutoff, rel=0.1)
    assert set(plan.choices) >= {"derivative", "velocity", "edges", "decimation", "rest", "reversals"}


def test_settings_win():
    settings = Filter(cutoff=60.0, decimate=3, rows=30.0, kind="fir", derivative="central3")
    plan = plan_motions([noisy()], arm(), settings, Mask(speed=0.02, around=10, rest=0.0))[0]
    assert (plan.cutoff, plan.decimate, plan.rows_cutoff, plan.kind) == (60.0, 3, 30.0, "fir")
    assert plan.derivative == "central3"
    assert plan.reversal_speed == (0.02, 0.02)
    assert plan.reversal_around == 10
    assert plan.rest_speed == (0.0, 0.0)
    assert "chosen" not in " ".join(plan.choices.values())


def test_rows_default_is_the_documented_low_pass():
    plan = plan_motions([noisy()], arm(), Filter(cutoff=60.0, decimate=5), Mask())[0]
    assert plan.rows_cutoff == pytest.approx(0.8 * 500.0 / (2 * 5))


def test_the_same_data_choose_the_same_plan():
    assert (
        plan_motions([noisy()], arm(), Filter(), Mask())[0]
        == plan_motions([noisy()], arm(), Filter(), Mask())[0]
    )


def test_more_noise_means_wider_reversal_masks():
    quiet, loud = (plan_motions([noisy(noise=n)], arm(), Filter(), Mask())[0] for n in (1e-6, 3e-2))
    assert np.all(np.array(loud.reversal_speed) > np.array(quiet.reversal_speed))


def test_velocity_auto_takes_measured_when_it_agrees():
    assert plan_motions([noisy(velocities=True)], arm(), Filter(), Mask())[0].velocity == "measured"
    assert plan_motions([noisy()], arm(), Filter(), Mask())[0].velocity == "derived"
    mixed = [noisy(velocities=True), noisy(seed=1)]
    assert plan_motions(mixed, arm(), Filter(), Mask())[0].velocity == "derived"
    with pytest.raises(InputError, match="no complete set of dq"):
        plan_motions(mixed, arm(), Filter(velocity="measured"), Mask())[0]


def test_logs_of_different_rates_get_their_own_plans():
    logs = [noisy(rate=500.0), noisy(rate=200.0)]
    plans = plan_motions(logs, arm(), Filter(), Mask())
    assert plans[0].cutoff == plans[1].cutoff
    assert plans[0].decimate > plans[1].decimate
    with pytest.raises(InputError, match="its plan"):
        Motion(logs[1], plans[0])


def test_too_short_a_log_is_refused():
    with pytest.raises(InputError, match="cut at each end"):
        plan_motions([noisy(seconds=1.0)], arm(), Filter(cutoff=1.0), Mask())[0]


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="half the sampling rate"):
        plan_motions([noisy()], arm(), Filter(cutoff=300.0), Mask())[0]
    with pytest.raises(InputError, match="did you mean 'derived'"):
        plan_motions([noisy()], arm(), Filter(velocity="derive"), Mask())[0]
    with pytest.raises(InputError, match="negative"):
        plan_motions([noisy()], arm(), Filter(), Mask(speed=-1.0))[0]


def test_quaternion_entries_have_no_reversals():
    t = np.arange(1000) / 100.0
    q = np.zeros((1000, 7))
    q[:, 0] = np.sin(2 * np.pi * 0.5 * t)
    q[:, 3], q[:, 6] = np.cos(0.4 * np.sin(t)), np.sin(0.4 * np.sin(t))
    log = log_from_arrays(platform(), t, q, q[:, :1])
    mover = Motion(log, plan_motions([log], platform(), Filter(cutoff=5.0), Mask(speed=0.1, rest=0.0))[0])
    (a, b), *_ = mover.usable()
    assert mover.weighted(a, b)[1][:, 3:].all()


def test_weights_rise_beside_reversals_and_are_those_of_the_whole_log(monkeypatch):
    log = noisy()
    mover = Motion(log, plan_motions([log], arm(), Filter(cutoff=10.0), Mask(speed=0.1, around=3, ramp=9))[0])
    (a, b), *_ = mover.usable()
    whole = mover.weighted(a, b)[1]
    monkeypatch.setattr("dynid.motion.motion.LARGE", 0)
    middle = (a + b) // 2
    parts = [mover.weighted(*span)[1] for span in ((a, middle), (middle, b))]
    assert np.array_equal(whole, np.concatenate(parts))
    assert {0.0, 1.0} < set(whole.ravel())
    assert np.abs(np.diff(whole, axis=0)).max() <= 0.5 * np.pi / 10  # half a cosine over ten steps


REAL = {  # folder: log, effort columns, joints, range of a sane cutoff [Hz] around the baseline's
    "panda_gaz": ("ident", "tau", 7, (4, 15)),
    "staubli_tx40": ("ident", "tau", 6, (30, 80)),
    "ur10_unisa": ("ident", "tau", 6, (2.5, 8)),
    "kuka_kr300": ("ident_A", "tau", 6, (4, 15)),
    "tiago": ("ident", "effort", 8, (3, 15)),
    # A gait, harmonics of 3 Hz up to its end: 34 Hz. Held-out error of rows at 15 Hz: 14.1 %, at best 13.4 %.
    "unitree_go2": ("traj_0", "tau_pd", 12, (10, 40)),
}


@pytest.mark.parametrize("folder", REAL)
def test_choices_on_real_logs_are_sane(folder):
    name, effort, count, (low, high) = REAL[folder]
    file = DATA / folder / f"{name}.parquet"
    if not file.exists():
        pytest.skip("the real logs are not beside the project")
    robot = arm(count)
    columns = {f"tau_{i + 1}": Column(f"{effort}_{i + 1}") for i in range(count)}
    log = read_log(file, robot, columns=columns)
    assert len(log.segments) == 1
    plan = plan_motions([log], robot, Filter(), Mask())[0]
    assert low <= plan.cutoff <= high
    assert 2.5 * plan.cutoff <= 1 / (log.dt * plan.decimate) <= 8 * plan.cutoff
    mover = Motion(log, plan)
    (a, b), *_ = mover.usable()
    weights = mover.weighted(a, b)[1]
    assert weights.mean() > 0.6  # most of an exciting motion is neither rest nor reversal


def test_a_clean_run_of_whole_periods_has_a_bandwidth():
    """Between the lines of a periodic motion there is only floor: it must not end the band."""
    t = np.arange(4000) / 2000.0
    q = np.column_stack(
        [0.3 * np.sin(2 * np.pi * 1.5 * t) + 0.05 * np.sin(2 * np.pi * 4 * t), 0.2 * np.cos(3 * np.pi * t)]
    )
    step = 1e-6
    log = log_from_arrays(arm(), t, np.rint(q / step) * step, q)
    plan = plan_motions([log], arm(), Filter(), Mask())[0]
    assert 10.0 < plan.cutoff < 80.0  # a few times the 4 Hz of the motion, not a tenth of the sampling rate


def test_noise_of_measured_velocities_lowers_the_cutoff() -> None:
    """A clean position does not help where the acceleration comes from a noisy velocity."""
    from dynid.mechanism.load import load_robot

    robot = load_robot("scara")
    t = np.arange(0, 40, 0.01)
    w = 2 * np.pi * 0.4
    q, dq = (np.repeat(x[:, None], 4, axis=1) for x in (np.sin(w * t), w * np.cos(w * t)))
    noise = np.random.default_rng(0).normal(size=dq.shape)
    cutoffs = {}
    for sigma in (0.0, 1e-3, 0.1):
        log = log_from_arrays(robot, t, q, np.zeros_like(q), dq=dq + sigma * noise)
        settings = Filter(velocity="measured")
        plan = plan_motions([log], robot, settings, Mask())[0]
        cutoffs[sigma] = plan.cutoff
        given = plan_motions([log], robot, Filter(cutoff=9.0, velocity="measured"), Mask())[0]
        assert given.cutoff == 9.0
        derived = plan_motions([log], robot, Filter(velocity="derived"), Mask())[0]
        assert derived.cutoff >= plan.cutoff
    # Four bandwidths (1.6 Hz and the resolution of the spectrum) always pass.
    assert 1.5 < cutoffs[0.1] < cutoffs[0.0]
    assert "measured velocities fall below the noise" in plan.choices["low-pass on coordinates"]


@pytest.mark.parametrize("seconds", [3.0, 5.0, 10.0])
@pytest.mark.parametrize("fundamental", [0.5, 1.0, 2.0])
def test_harmonics_of_a_fast_periodic_motion_are_not_taken_for_noise(seconds, fundamental) -> None:
    """Between its lines a clean run of whole periods is all floor; the cutoff must not end there."""
    rng = np.random.default_rng(3)
    t = np.arange(0.0, seconds, 2e-3)
    phase = rng.uniform(0.0, 2.0 * np.pi, (8, 3))
    size = rng.uniform(0.5, 1.0, (8, 3)) / np.arange(1, 9)[:, None] ** 2
    angle = 2.0 * np.pi * fundamental * np.arange(1, 9)[None, :] * t[:, None]
    q = np.einsum("nk,km->nm", np.sin(angle), size * np.cos(phase))
    q += np.einsum("nk,km->nm", np.cos(angle), size * np.sin(phase))
    found = spectrum(q + 1e-6 * rng.standard_normal(q.shape), 2e-3)
    # The last of the eight harmonics is still far above the noise.
    assert np.all(found.sink > 8 * fundamental)
    assert cutoff_of([found], 2e-3) > 1.5 * 8 * fundamental


def test_lines_far_above_the_motion_do_not_raise_the_cutoff() -> None:
    """Vibration of a structure at 40 Hz and mains hum, beside a motion below 1 Hz."""
    rng = np.random.default_rng(4)
    t = np.arange(0.0, 15.0, 1e-3)
    q = np.sin(2 * np.pi * 0.3 * t) + 0.3 * np.sin(2 * np.pi * 0.7 * t + 1.0)
    quiet = q + 1e-4 * rng.standard_normal(len(t))
    lines = 3e-5 * np.sin(2 * np.pi * 40.0 * t) + 3e-5 * np.sin(2 * np.pi * 100.0 * t)
    before, after = (cutoff_of([spectrum(x[:, None], 1e-3)], 1e-3) for x in (quiet, quiet + lines))
    assert after == pytest.approx(before, rel=0.1)
    assert after < 20.0


def test_a_short_log_beside_a_long_one_does_not_raise_the_cutoff() -> None:
    """Two seconds of the same slow motion: their spectrum is blurred, not faster. Faster motion counts."""
    rng = np.random.default_rng(5)
    t = np.arange(0.0, 12.0, 1e-3)
    slow = np.sin(2 * np.pi * 0.2 * t) + 0.4 * np.sin(2 * np.pi * 0.45 * t + 1.0)
    q = (slow + 1e-6 * rng.standard_normal(len(t)))[:, None]
    fast = q + 0.1 * np.sin(2 * np.pi * 3.0 * t)[:, None]

    def cutoff(*runs: Any) -> float:
        """Of one log for each run: logs of which only fragments are used beside longer ones count too."""
        logs = [
            log_from_arrays(arm(), 1e-3 * np.arange(len(run)), run * [1.0, 0.5], np.zeros((len(run), 2)))
            for run in runs
        ]
        return cutoff_of(spectra_of(logs), 1e-3)

    alone = cutoff(q)
    assert cutoff(q[:2000]) > 1.5 * alone
    assert cutoff(q[:2000], q) < 1.2 * alone
    assert cutoff(fast[:2000], q) > 2.0 * alone
    # Cut into so many runs, or logs: the next line of the spectrum, 0.125 Hz away, is 1.9 Hz of the cutoff.
    for count in (2, 3, 6):
        assert cutoff(*np.split(q, count)) == pytest.approx(alone, abs=1.95), count
