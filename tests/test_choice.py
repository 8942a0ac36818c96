"""Settings that are left open are chosen by held-out error, the simplest of equals; given keys stay."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dynid import load_robot
from dynid import problem as problem_module
from dynid.choice import choose as choose_module
from dynid.choice.candidate import applied, friction_choices, open_settings
from dynid.choice.choose import (
    _estimator,
    _first_as_good,
    _single_drives,
    _started,
    choose,
    reference,
)
from dynid.choice.fold_rows import _WINDOW, _windows
from dynid.choice.search import Search
from dynid.common.errors import InputError
from dynid.conditioning.lowpass import row_filter
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment, FilterSettings, MaskSettings, read_experiment
from dynid.experiment.provenance import experiment_of
from dynid.fit import fit_task
from dynid.mechanism.parameters import parameter_table
from dynid.motion.choose import spectra_of
from dynid.motion.logs import log_from_arrays
from dynid.motion.spectrum import motion_band
from dynid.pipeline import identify_logs
from dynid.problem import as_asked
from dynid.report.json_file import json_text, read_result, result_document
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.prescribed import inverse_efforts, simulate_log
from dynid.statistics.estimate_parts import Candidate
from dynid.unknown import Task
from tests.built_in import written_robot
from tests.test_rows_without_effort import noisy_log

pytestmark = pytest.mark.auto

PENDULUM = """
name: pendulum
gravity: [0, -9.81, 0]
joints:
  - {name: a, kind: revolute, parent: base, child: upper, mdh: {}}
  - {name: b, kind: revolute, parent: upper, child: lower, mdh: {d: 0.5}}
drive: {"*": [Fv, Fs]}
limits: {a: {q: 1, dq: 3, ddq: 20}, b: {q: 1, dq: 3, ddq: 20}}
bodies:
  upper: {prior: {M: 3.0, com: [0.3333, 0, 0], XX: 0.01, XY: 0, XZ: 0, YY: 0.34, YZ: 0, ZZ: 0.34}}
  lower: {prior: {M: 3.0, com: [0.3333, 0, 0], XX: 0.01, XY: 0, XZ: 0, YY: 0.34, YZ: 0, ZZ: 0.34}}
"""
LIFT = """
name: lift
joints:
  - {name: lift, kind: prismatic, parent: base, child: column, mdh: {}}
  - {name: turn, kind: revolute, parent: column, child: boom, mdh: {alpha: pi/2}}
drive: {"*": [Fv, Fs, Off, Fl]}
limits: {lift: {q: 0.3, dq: 0.6, ddq: 3}, turn: {q: 1, dq: 3, ddq: 20}}
bodies:
  column: {prior: {M: 20.0, com: [0, 0, 0.2], XX: 1, XY: 0, XZ: 0, YY: 1, YZ: 0, ZZ: 0.2}}
  boom: {prior: {M: 3.0, com: [0.33, 0, 0], XX: 0.01, XY: 0, XZ: 0, YY: 0.34, YZ: 0, ZZ: 0.34}}
"""
SIZE = {"YY": 0.34, "ZZ": 0.34, "XX": 0.01, "MX": 1.0, "M": 3.0, "Fv": 0.5, "Fs": 0.4, "Fr": 1.5, "Fl": 0.1}


def recorded(robot, terms=("Fv", "Fs"), seed: int = 1):
    """Ten seconds at 200 Hz with these drive terms, noise of 0.1 N m and velocities."""
    true_robot = replace(robot, drive=dict.fromkeys(robot.drive, terms))
    truth = {p.name: SIZE.get(p.symbol, 0.0) for p in parameter_table(true_robot)}
    motion = random_motion(robot, seed=seed, draws=3)
    return simulate_log(
        true_robot, truth, motion, rate=200.0, duration=10.0, torque_sigma=0.1, seed=seed, velocity=True
    )


def test_the_simplest_settings_win_where_nothing_else_helps(tmp_path) -> None:
    robot = written_robot(tmp_path, PENDULUM)
    task, tried, notices = choose(Task(robot, (recorded(robot),), Experiment(robot=robot)))
    assert not notices
    assert task.mechanism.drive == robot.drive
    assert task.experiment.estimator == "wls"
    assert task.experiment.filter == FilterSettings()
    (chosen,) = (one for one in tried if one.chosen)
    assert (chosen.friction, chosen.mask, chosen.estimator) == ("Fv Fs", "reversals", "wls")


def test_rows_of_the_chosen_settings_are_not_computed_again(tmp_path, monkeypatch) -> None:
    robot = written_robot(tmp_path, PENDULUM)
    task = choose(Task(robot, (recorded(robot),), Experiment(robot=robot)))[0]
    assert task.prepared is not None
    anew = fit_task(replace(task, prepared=None)).solution.chi
    for source in task.prepared.sources:
        monkeypatch.setattr(source, "rows", lambda *arguments: pytest.fail("computed again"))
    monkeypatch.setattr(problem_module, "stream", lambda *arguments: pytest.fail("streamed again"))
    np.testing.assert_array_equal(fit_task(task).solution.chi, anew)


def test_friction_that_the_drives_have_is_found_and_a_rerun_repeats_the_result(tmp_path) -> None:
    robot = written_robot(tmp_path, PENDULUM)
    log = recorded(robot, ("Fv", "Fs", "Fr"))
    estimate = identify_logs(robot, [log], (), Experiment(robot=robot))
    assert {"Fr_a", "Fr_b"} <= set(estimate)
    plain = next(one for one in estimate.tried if one.friction == "Fv Fs")
    (chosen,) = (one for one in estimate.tried if one.chosen)
    assert chosen.held_out_percent < 0.8 * plain.held_out_percent
    experiment = experiment_of(estimate.provenance["options"])
    assert experiment.auto == "off"
    again = identify_logs(as_asked(robot, experiment), [log], (), experiment)
    assert [one.value for one in again.parameters] == [one.value for one in estimate.parameters]
    assert again.tried == ()
    file = tmp_path / "result.json"
    file.write_text(json_text(result_document(estimate)))
    assert read_result(file).tried == estimate.tried
    first = json.loads(file.read_text())["choices_tried"][0]
    names = ["cutoff", "mask", "velocity", "friction", "estimator", "held_out_percent", "chosen"]
    assert list(first) == names


@pytest.mark.parametrize("seed", range(1, 4))
def test_no_settings_predict_better_than_a_fit_to_the_reference_rows(tmp_path, monkeypatch, seed) -> None:
    """Then settings that cannot win need not be tried, and the choice is the same."""
    robot = written_robot(tmp_path, PENDULUM)
    task = Task(robot, (recorded(robot, seed=seed),), Experiment(robot=robot))
    quick, few, _ = choose(task)
    least = []
    searched = choose_module._searched

    def kept(search, *given):
        best = searched(search, *given)
        least.append(search.least())
        return best

    monkeypatch.setattr(choose_module, "_searched", kept)
    monkeypatch.setattr(choose_module, "_may_gain", lambda *_: True)
    full, many, _ = choose(task)
    assert len(few) < len(many)
    assert (full.mechanism.drive, full.experiment.estimator) == (robot.drive, "wls")
    assert quick.experiment.filter == full.experiment.filter
    plain = [one for one in many if one.friction == "Fv Fs"]
    # Chance: folds that were not fitted are missed by a little more, never by 1 % less.
    bound = 100.0 * np.exp(least[0].mean())
    assert all(one.held_out_percent > 0.99 * bound for one in plain)


def test_a_given_key_fixes_its_part(tmp_path) -> None:
    robot = written_robot(tmp_path, PENDULUM)
    given = Experiment(
        robot=robot,
        drive=("Fv", "Fs"),
        filter=FilterSettings(cutoff=12.0, velocity="measured"),
        mask=MaskSettings(speed=0.1),
        estimator="wls",
    )
    assert not open_settings(robot, given)
    task = Task(robot, (recorded(robot),), given)
    assert choose(task) == (task, (), ())
    free = replace(task, experiment=Experiment(robot=robot, auto="off"))
    assert choose(free) == (free, (), ())
    part = open_settings(robot, Experiment(robot=robot, estimator="ols", mask=MaskSettings(speed=0.1)))
    assert part == {"cutoff", "velocity", "friction"}


@pytest.mark.parametrize("estimator", ["ols", "robust", "consistent", "iv"])
def test_an_estimator_that_is_given_stays(tmp_path, estimator: str) -> None:
    """Other settings are chosen with it; it was replaced by `wls`."""
    robot = written_robot(tmp_path, PENDULUM)
    experiment = Experiment(robot=robot, estimator=estimator)
    task, tried, _ = choose(Task(robot, (recorded(robot),), experiment))
    assert task.experiment.estimator == estimator
    assert {candidate.estimator for candidate in tried} == {estimator}


def test_logs_that_are_too_short_to_choose_from_are_reported(tmp_path) -> None:
    """Two periods of the fastest motion give no three folds: the rules hold, and the result says so."""
    robot = written_robot(tmp_path, PENDULUM)
    log = recorded(robot)
    short = replace(log, segments=((0, round(2.0 / log.dt)),))
    assert motion_band(spectra_of([short])) * 2.0 < 3.0
    task = Task(robot, (short,), Experiment(robot=robot))
    found, tried, (said,) = choose(task)
    assert found is task
    assert not tried
    assert said.code == "nothing-chosen"
    assert "periods of the fastest motion" in said.text


def test_slow_motion_that_the_mask_would_lose_is_kept(tmp_path) -> None:
    """Joint b is fast in the first fifth only; elsewhere the mask at reversals leaves none of its rows.

    Without that part the plain settings cannot be fitted. This was held against them, and the first
    settings that could be were chosen, however poor. Now the search begins without the mask.
    """
    robot = written_robot(tmp_path, PENDULUM)
    t = np.arange(0.0, 10.0, 0.005)
    ending = 1.0 / (1.0 + np.exp((t - 1.7) / 0.05))
    q = np.column_stack([np.sin(3.0 * t) + 0.4 * np.sin(5.1 * t), np.sin(7.0 * t) * (1e-3 + ending)])
    rates = [np.gradient(q, t, axis=0)]
    rates.append(np.gradient(rates[0], t, axis=0))
    truth = {p.name: SIZE.get(p.symbol, 0.0) for p in parameter_table(robot)}
    tau = inverse_efforts(robot, truth, q, *rates)
    tau += 0.1 * np.random.default_rng(1).standard_normal(tau.shape)
    _, tried, _ = choose(Task(robot, (log_from_arrays(robot, t, q, tau),), Experiment(robot=robot)))
    assert tried[0].mask == "none"
    assert tried[0].held_out_percent is not None


def test_friction_per_direction_needs_motion_both_ways(tmp_path) -> None:
    """Joint b turns on and hardly ever back: friction of that direction would be extrapolated tenfold."""
    robot = written_robot(tmp_path, PENDULUM)
    true_robot = replace(robot, drive=dict.fromkeys(robot.drive, ("Fv", "Fs", "Fr")))
    truth = {p.name: SIZE.get(p.symbol, 0.0) for p in parameter_table(true_robot)}
    t = np.arange(0.0, 10.0, 0.005)

    def friction_tried(ahead: float) -> set[str]:
        q = np.column_stack([np.sin(3.0 * t) + 0.4 * np.sin(5.1 * t), ahead * t + 0.2 * np.sin(5.0 * t)])
        rates = [np.gradient(q, t, axis=0)]
        rates.append(np.gradient(rates[0], t, axis=0))
        tau = inverse_efforts(true_robot, truth, q, *rates)
        tau += 0.1 * np.random.default_rng(1).standard_normal(tau.shape)
        _, tried, _ = choose(Task(robot, (log_from_arrays(robot, t, q, tau),), Experiment(robot=robot)))
        return {one.friction for one in tried if ";" not in one.friction}

    both = friction_tried(0.0)
    assert "Fv+ Fv- Fs+ Fs-" in both
    assert friction_tried(0.9) == both - {"Fv+ Fv- Fs+ Fs-"}


def test_a_noisy_candidate_that_is_worse_than_a_simpler_one_is_not_chosen() -> None:
    """The second is within its own large error of the best, but worse than the first, which is not."""
    plain, noisy = np.zeros(4), np.array([0.3, -0.3, 0.25, -0.2])
    assert _first_as_good([plain, noisy, np.array([-0.09, -0.11, -0.09, -0.11])]) == 2


@pytest.mark.parametrize(
    ("gains", "chosen"),
    [
        ([0.05, 0.06, 0.05, 0.07, 0.72], 1),  # by all folds: the last hid the others in its standard error
        ([0.18, 0.03, 0.0, 0.0, 0.0], 0),  # by one fold alone
        ([0.30, 0.25, 0.35, 0.28, 0.31], 1),
    ],
)
def test_one_fold_neither_decides_on_a_filter_nor_hides_the_others(gains: list[float], chosen: int) -> None:
    assert _first_as_good([np.array(gains), np.zeros(5)], 2.0, capped=True) == chosen


@pytest.mark.parametrize(
    ("lost", "masked", "unmasked", "mask", "folds"),
    [
        ("nothing", (), (0,), "reversals", (0, 1, 2, 3)),
        ("less without the mask", (0, 3), (0,), "none", (1, 2, 3)),
        ("the same", (2,), (2,), "reversals", (0, 1, 3)),
    ],
)
def test_a_part_that_alone_determines_a_parameter_does_not_judge(
    lost: str, masked: tuple[int, ...], unmasked: tuple[int, ...], mask: str, folds: tuple[int, ...]
) -> None:
    plain = Candidate()
    missing = {plain: masked, replace(plain, mask="none"): unmasked}
    search = object.__new__(Search)
    search.parts = (None,) * 4
    search.fitted = lambda one, k: None if k in missing[one] else np.zeros(1)
    assert search.started(list(missing)).mask == mask
    assert search.folds == folds


def test_velocities_much_noisier_than_the_positions_are_derived(tmp_path) -> None:
    """Both sources predict about as well below the noise of the efforts: the noise of each decides."""
    robot = written_robot(tmp_path, PENDULUM)
    log = recorded(robot)
    size = np.abs(log.dq).max(axis=0)
    noise = 0.03 * size * np.random.default_rng(5).standard_normal(log.dq.shape)
    noisy = replace(log, dq=log.dq + noise)
    _, tried, _ = choose(Task(robot, (noisy,), Experiment(robot=robot, drive=("Fv", "Fs"), estimator="wls")))
    (chosen,) = (one for one in tried if one.chosen)
    assert chosen.velocity == "derived"


@pytest.mark.parametrize(("delay", "source"), [(0.0, "measured"), (0.002, "measured"), (0.06, "derived")])
def test_velocities_that_a_controller_filters_slowly_are_not_used(tmp_path, delay, source) -> None:
    """Rows with late velocities would judge derived ones unfairly."""
    robot = written_robot(tmp_path, PENDULUM)
    log = recorded(robot)
    late = replace(log, dq=np.stack([np.interp(log.t - delay, log.t, v) for v in log.dq.T], axis=1))
    task, _, notices = choose(Task(robot, (late,), Experiment(robot=robot, drive=("Fv", "Fs"))))
    assert (task.experiment.filter.velocity == "derived") == (source == "derived")
    assert ["60 ms later" in remark.text for remark in notices] == [True] * (source == "derived")


def test_a_vibration_that_the_efforts_do_not_show_is_filtered_out(tmp_path) -> None:
    """At 1 kHz, 0.1 mrad at 20 to 40 Hz: cutoffs of 50 Hz and more are all equally bad."""
    from scipy.signal import butter, sosfiltfilt

    robot = written_robot(tmp_path, PENDULUM)
    truth = {p.name: SIZE.get(p.symbol, 0.0) for p in parameter_table(robot)}
    motion = random_motion(robot, seed=3, draws=3, frequency=0.8, harmonics=5)
    log = simulate_log(robot, truth, motion, rate=1000.0, duration=8.0, torque_sigma=0.1, seed=3)
    noise = np.random.default_rng(4).standard_normal(log.q.shape)
    band = butter(2, [20.0, 40.0], btype="band", fs=1000.0, output="sos")
    shake = sosfiltfilt(band, noise, axis=0)
    shaken = replace(log, q=log.q + 1e-4 * shake / shake.std(axis=0) + 1e-7 * noise)
    asked = Experiment(robot=robot, drive=("Fv", "Fs"), estimator="wls")
    _, tried, _ = choose(Task(robot, (shaken,), asked))
    (chosen,) = (one for one in tried if one.chosen)
    assert tried[0].cutoff > 50.0
    assert chosen.cutoff < 20.0
    assert chosen.held_out_percent < 0.2 * tried[0].held_out_percent


def test_a_drive_alone_gets_the_terms_that_it_needs(tmp_path) -> None:
    robot = written_robot(tmp_path, PENDULUM)
    true_robot = replace(robot, drive={"a": ("Fv", "Fs"), "b": ("Fv", "Fs", "Fr")})
    truth = {p.name: SIZE.get(p.symbol, 0.0) for p in parameter_table(true_robot)}
    motion = random_motion(robot, seed=1, draws=3)
    log = simulate_log(true_robot, truth, motion, rate=200.0, duration=10.0, torque_sigma=0.1, seed=1)
    asked = Experiment(robot=robot)
    search = _started(Task(robot, (log,), asked), friction_choices(robot))
    assert search is not None
    search.judged_by(reference(asked, search.spectra, search.plans), (), {})
    plain, more = Candidate(friction="Fv Fs"), Candidate(friction="Fv Fs Fr")
    search = search.extended((("Fv", "Fs"), ("Fv", "Fs", "Fr")), {})
    (single,) = _single_drives(search, plain, [plain, more])
    assert single.friction == "Fv Fs; b: Fv Fs Fr"
    given = applied(single, asked, robot.drive)
    assert as_asked(robot, given).drive == true_robot.drive
    read = experiment_of({"robot": "scara", "drive": {"b": ["Fv", "Fs", "Fr"]}})
    assert as_asked(robot, read).drive == true_robot.drive
    globbed = Experiment(robot=robot, drive={"b": ("Fv", "Fs", "Fr"), "*": ("Fv", "Fs")})
    assert as_asked(robot, globbed).drive == true_robot.drive
    with pytest.raises(InputError, match="'c' is no joint and no motor"):
        as_asked(robot, Experiment(robot=robot, drive={"c": ("Fv",)}))


@pytest.mark.parametrize("what", ["more friction", "consistent bodies"])
def test_intervals_cover_the_truth_after_the_choice(tmp_path, what) -> None:
    """30 logs: a friction term that the description lacks is added, or the consistent estimate is chosen."""
    robot, more = written_robot(tmp_path, PENDULUM), what == "more friction"
    terms, sigma, seconds = (("Fv", "Fs", "Fr"), 0.1, 10.0) if more else (("Fv", "Fs"), 0.5, 4.0)
    # Bodies that differ from their prior: the intervals must hold what the prior pulls.
    other = {} if more else {"MX": 1.2, "YY": 0.42, "ZZ": 0.42, "M": 3.3}
    true_robot = replace(robot, drive=dict.fromkeys(robot.drive, terms))
    truth = {p.name: {**SIZE, **other}.get(p.symbol, 0.0) for p in parameter_table(true_robot)}
    inside = []
    for seed in range(10, 40):
        motion = random_motion(robot, seed=seed, draws=3)
        how = {"rate": 200.0, "duration": seconds, "torque_sigma": sigma, "velocity": True}
        log = simulate_log(true_robot, truth, motion, seed=seed, **how)
        estimate = identify_logs(robot, [log], (), Experiment(robot=robot), truth=truth)
        (chosen,) = (one for one in estimate.tried if one.chosen)
        if ("Fr" in chosen.friction) if more else chosen.estimator == "consistent":
            true = {
                p.name: estimate.truth.get(p.name, 0.0) for p in estimate.parameters
            }  # a term too many is 0
            held = [p.ci95[0] <= true[p.name] <= p.ci95[1] for p in estimate.parameters]
            inside.append(np.mean(held))
    assert len(inside) > 15
    # Parameters of one log are correlated, as if it had three: 0.95 -+ 3 sqrt(0.95 0.05 / 45).
    assert 0.85 <= np.mean(inside) <= 0.995


class Judged(Search):
    """A search whose errors are known: that of `wls` is larger by `gaps` than that of `consistent`."""

    def __init__(self, exist: bool, gaps: tuple[float, ...]) -> None:
        self.exist, self.gaps = exist, np.array(gaps)
        self.size = np.ones((len(gaps), 2))

    def has_bodies(self, candidate):
        return self.exist

    def tried(self, candidate):
        alike = np.log(np.full(self.size.size, 0.1))
        return alike + (np.repeat(self.gaps, 2) if candidate.estimator == "wls" else 0.0)

    def least(self):
        return np.log(np.full(self.size.size, 0.05))


@pytest.mark.parametrize(
    ("exist", "gaps", "chosen"),
    [
        (True, (0.02, 0.02, 0.02), "wls"),  # within the margin
        (True, (0.20, 0.25, 0.22), "consistent"),
        (False, (0.20, 0.25, 0.22), "wls"),
        # One fold of four: the mean is 0.12, its standard error 0.11, for four values 1.2 times as wide.
        (True, (0.02, 0.02, 0.45, 0.0), "wls"),
    ],
)
def test_the_linear_estimate_is_the_simpler_of_equals(exist, gaps, chosen) -> None:
    """`gaps`: how much larger its error is in each fold; the two efforts of a fold are not independent."""
    assert _estimator(Judged(exist, gaps), Candidate()).estimator == chosen


def test_only_plain_friction_is_extended(tmp_path) -> None:
    robot = written_robot(tmp_path, PENDULUM)
    assert friction_choices(robot)[0] == ("Fv", "Fs")
    assert friction_choices(replace(robot, drive={"a": ("Fv",), "b": ("Fv", "Fs")})) == ()
    assert friction_choices(replace(robot, drive=dict.fromkeys("ab", ("Fv", "Fs", "Fr")))) == ()
    assert friction_choices(replace(robot, drive={})) == ()


def test_a_candidate_changes_only_what_it_names(tmp_path) -> None:
    experiment = Experiment(robot=written_robot(tmp_path, PENDULUM))
    assert applied(Candidate(), experiment) == experiment
    other = Candidate(5.0, "none", "derived", "Fv", "consistent")
    found = applied(other, experiment)
    assert found.filter == FilterSettings(cutoff=5.0, velocity="derived")
    assert found.mask == MaskSettings(speed=0.0)
    assert (found.drive, found.estimator) == (("Fv",), "consistent")


def test_the_file_can_switch_the_choice_off(tmp_path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("robot: scara\nlogs: [run.csv]\nauto: off\n")
    assert read_experiment(file).auto == "off"


def test_loads_of_a_consistent_estimate_are_those_of_its_bodies(tmp_path) -> None:
    """The weight on a vertical slider acts like an offset: only bodies say how much of it is a load."""
    robot = written_robot(tmp_path, LIFT)
    terms = robot.drive["lift"]
    logs = [recorded(robot, terms, seed) for seed in (1, 2)]
    experiment = Experiment(robot=robot, estimator="consistent", auto="off")
    estimate = identify_logs(robot, logs[:1], logs[1:], experiment)
    (other,) = estimate.validation
    # The same noise is left; a load by other masses would leave 10 % of the weight.
    assert other.residual_percent < 1.5 * estimate.fit.residual_percent


def test_rows_without_effort_keep_their_own_settings() -> None:
    """A chosen low-pass on coordinates would bias them."""
    robot = load_robot("cable4")
    task = Task(robot, (noisy_log(robot, 0, duration=20.0),), Experiment(robot=robot, model="inverse"))
    assert choose(task) == (task, (), ())


def test_bodies_that_can_grow_without_effect_are_not_chosen() -> None:
    """A power equation does not bound the bodies of a palletiser: as asked it fails, chosen it must not."""
    robot = load_robot("palletiser")
    demo = read_demo(demo_file("palletiser"), robot)
    motion = random_motion(robot, seed=1, harmonics=demo.harmonics, frequency=demo.frequency)
    log = simulate_log(robot, demo.truth, motion, rate=200.0, duration=6.0, torque_sigma=0.1, seed=1)
    task = Task(robot, (log,), Experiment(robot=robot, model="power", drive=("Fv", "Fs")))
    search = _started(task, ())
    assert search is not None
    assert not search.has_bodies(Candidate())


@pytest.mark.parametrize("share", [1e-4, 0.02, 0.5])
def test_windows_that_judge_settings_are_longer_than_the_row_filter(share: float) -> None:
    rows = row_filter(1e-3, 10)
    held = [(0, 20_000, 0), (20_000, 40_000, 1)]
    windows = _windows([(0, 15_000), (16_000, 40_000)], held, share, rows)
    least = _WINDOW * len(rows.kernel)
    ranges = [(0, 15_000), (16_000, 20_000), (20_000, 40_000)]
    for a, b in ranges:
        inside = [(start, stop) for start, stop in windows if a <= start and stop <= b]
        assert inside
        assert all(stop - start >= min(least, b - a) for start, stop in inside)
    assert len(windows) == sum(any(a <= w[0] and w[1] <= b for a, b in ranges) for w in windows)
