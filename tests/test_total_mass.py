"""A weighed robot as the reference of drive gains: sums of base parameters, priors, refusals, checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.base.system import base_system
from dynid.checks.total_mass import Weighed, weigh
from dynid.common.errors import InputError
from dynid.estimator.gains import solve_gains
from dynid.estimator.settings import GainSettings, TotalMass
from dynid.experiment.experiment import Experiment, read_experiment
from dynid.linear_fit import base_of
from dynid.mechanism.load import load_robot
from dynid.motion.settings import FilterSettings
from dynid.pipeline import identify_logs
from dynid.problem import build_system, prepare
from dynid.projection.factor import Factor
from dynid.projection.projection import System
from dynid.statistics.covariance import covariance_of
from dynid.statistics.uncertainty import interval95
from tests.built_in import truth_of
from tests.test_gains import CHI, GAINS, NOISE, effort_noise, gain_system, gains_of, rows, runs

RODS = tuple(f"rod{i}" for i in range(1, 7))
MOTIONS = {"serial6": (500.0, 12.0, 0.05), "dualv": (500.0, 3.0, 1.0), "stewart": (200.0, 8.0, 0.3)}


def weighed_robot(name: str, noise: float = 0.01, colour: float | None = None, seed: int = 0):
    """A robot, its truth, two runs in wrong units of effort, and the true gains."""
    # Without `rebuild` no symbols are searched for the groupings, which nothing here reads.
    robot = replace(load_robot(name), rebuild=None)
    truth = truth_of(name)
    tension = 6.0 if name == "dualv" else 0.0
    robot, logs, gains = runs(robot, truth, ((), ()), noise, colour, seed, *MOTIONS[name], tension=tension)
    return robot, truth, logs, gains


def with_priors(robot, truth):
    """The robot with its true values as priors: CAD data that happen to be right."""
    bodies = {
        name: replace(
            body, prior={s: truth[f"{s}_{name}"] for s in body.parameters if f"{s}_{name}" in truth}
        )
        for name, body in robot.bodies.items()
    }
    return replace(robot, bodies=bodies)


def total(truth, bodies) -> float:
    return sum(truth[f"M_{body}"] for body in bodies if f"M_{body}" in truth)


def find(robot, logs, mass, **options):
    if robot.name == "dualv":
        options["filter"] = FilterSettings(cutoff=60.0)
    experiment = Experiment(
        robot=robot, gains=GainSettings(total_mass=mass, **options.pop("gains", {})), **options
    )
    return identify_logs(robot, logs, (), experiment)


def test_the_sum_is_the_mass_for_any_parameters() -> None:
    """a^T chi_base + priors = mass, for random bodies: the equation itself, not a fit."""
    robot, truth, logs, _ = weighed_robot("stewart")
    problem = prepare(robot, logs, Experiment(robot=robot))
    data = base_system(build_system(problem), base_of(problem, Experiment(robot=robot)))
    found = weigh(robot, data, TotalMass(total(truth, ("platform", *RODS)), ("platform", *RODS)))
    rng = np.random.default_rng(3)
    for _ in range(5):
        standard = rng.uniform(0.5, 2.0, len(problem.parameters))
        names = [parameter.name for parameter in problem.parameters]
        mass = total(dict(zip(names, standard, strict=True)), ("platform", *RODS))
        # Grouping relations are exact to the structural rank's rounding.
        assert found.a @ (data.G @ standard) == pytest.approx(mass, rel=1e-6)
    assert not found.priors
    chi_0, Z, _ = found.solved(np.ones(len(found.a)))
    y = rng.standard_normal(Z.shape[1])
    assert found.a @ (chi_0 + Z @ y) == pytest.approx(found.mass)


def test_a_stewart_platform_is_weighed_without_its_cylinders() -> None:
    bodies = ("platform", *RODS)
    robot, truth, logs, gains = weighed_robot("stewart")
    estimate = find(robot, logs, TotalMass(total(truth, bodies), bodies))
    for one, value in zip(gains_of(estimate, robot), gains, strict=True):
        assert one.value == pytest.approx(value, rel=0.01)
        assert one.ci95[0] <= value <= one.ci95[1]
    assert "total mass 35.87 kg" in estimate.choices["drive gains"]
    assert len(estimate.covariance) == sum(p.sigma is not None for p in estimate.parameters)


@pytest.mark.parametrize("name", ["serial6", "dualv", "stewart"])
def test_what_the_base_carries_is_taken_from_priors_and_said(name: str) -> None:
    robot, truth, logs, gains = weighed_robot(name)
    estimate = find(with_priors(robot, truth), logs, total(truth, robot.bodies))
    for one, value in zip(gains_of(estimate, robot), gains, strict=True):
        # 1 % of noise; the scale of all gains together is known to 0.2 to 0.5 % (one sigma) here.
        assert one.value == pytest.approx(value, rel=0.015)
        assert one.ci95[0] <= value <= one.ci95[1]
    (told,) = [one for one in estimate.warnings if one.code == "mass-prior"]
    assert "taken from the priors of" in told.text


@pytest.mark.parametrize("name", ["serial6", "dualv"])
def test_intervals_hold_the_truth_at_five_percent_coloured_noise(name: str) -> None:
    inside = []
    for seed in range(2):
        robot, truth, logs, gains = weighed_robot(name, 0.05, 0.95, seed)
        estimate = find(with_priors(robot, truth), logs, total(truth, robot.bodies))
        found = gains_of(estimate, robot)
        inside += [one.ci95[0] <= g <= one.ci95[1] for one, g in zip(found, gains, strict=True)]
    # The scale is common to all gains of a seed, so these are few independent draws: one miss in six.
    assert np.mean(inside) >= 5 / 6


def test_without_priors_an_arm_on_a_fixed_base_is_refused_with_the_missing_parameters() -> None:
    robot, truth, logs, _ = weighed_robot("serial6")
    with pytest.raises(InputError, match="not identifiable from the efforts: M_B1, M_B2 and MX_B2") as caught:
        find(robot, logs, total(truth, robot.bodies))
    assert "cannot set the scale" in caught.value.text
    robot, truth, logs, _ = weighed_robot("dualv")
    with pytest.raises(InputError, match="only in sums with other parameters"):
        find(robot, logs, total(truth, robot.bodies))


def test_a_mass_below_its_known_parts_and_bodies_that_do_not_exist_are_refused() -> None:
    robot, truth, logs, _ = weighed_robot("serial6")
    with pytest.raises(InputError, match="must be less than the weighed"):
        find(with_priors(robot, truth), logs, 10.0)
    with pytest.raises(InputError, match="did you mean 'B1'"):
        find(robot, logs, TotalMass(10.0, ("B11",)))
    with pytest.raises(InputError, match="is not positive"):
        TotalMass(-1.0)


def test_intervals_of_weighed_gains_cover_the_truth() -> None:
    """150 draws on rows of two joints: nothing is known but a sum of two parameters."""
    a = np.array([1.0, 0.0, 0.5, 0.0])
    weighed = Weighed(a, float(a @ CHI), float(a @ CHI), {})
    chi_0, Z, _ = weighed.solved(np.ones(4))
    hits = []
    for seed in range(150):
        rng = np.random.default_rng([11, seed])
        joints, _ = rows(rng, n=960, noise=0.0)
        held, currents = [], []
        for (W, _), g in zip(joints, GAINS, strict=True):
            held.append((np.column_stack([W @ Z, np.zeros(len(W))]), W @ chi_0))
            currents.append(W @ CHI / g + 0.3 * effort_noise(rng, len(W), 1, 0.8)[:, 0])
        system = gain_system(held, currents)
        # The fourth parameter is gone: so is its column.
        kept = [0, 1, 2, 4, 5]
        groups = [
            replace(one, columns=np.arange(5), blocks=tuple(select(b, kept) for b in one.blocks))
            for one in system.groups
        ]
        system = System(tuple(system.parameters[k] for k in kept), tuple(groups))
        found = solve_gains(system, NOISE)
        spread = covariance_of(system, found.solution)
        ci = interval95(found.solution.chi, spread.covariance, spread.dof)[3:]
        hits.append((ci[:, 0] <= GAINS) & (ci[:, 1] >= GAINS))
    # 300 intervals, the two of a draw related: 95 % +- 1.8 %; two deviations, and what 24 blocks cost.
    assert 0.90 <= np.mean(hits) <= 0.99


def select(block: Factor, kept: list[int]) -> Factor:
    return Factor(block.R[:, [*kept, -1]], block.n_rows)


def test_34_the_mass_accuses_efforts_of_a_wrong_gain_and_acquits_right_ones() -> None:
    """A check only: no gain is open. All efforts 10 % too large, one of them, or none."""
    bodies = ("platform", *RODS)
    robot, truth, logs, gains = weighed_robot("stewart", 0.005)
    right = [replace(log, tau=log.tau * gains) for log in logs]

    def gain_warnings(factors):
        wrong = [replace(log, tau=log.tau * factors) for log in right]
        mass = TotalMass(total(truth, bodies), bodies)
        estimate = find(robot, wrong, mass, gains={"unknown": ()})
        return [one.text for one in estimate.warnings if one.code == "gain"]

    assert gain_warnings(1.0) == []
    (said,) = gain_warnings(1.1)
    assert "all efforts are 1" in said or "all efforts are 9" in said
    (said,) = gain_warnings(np.where(np.arange(6) == 2, 1.1, 1.0))
    assert "'leg3' is 1" in said or "'leg3' is 9" in said


def test_files_may_give_a_number_or_name_bodies(tmp_path) -> None:
    file = tmp_path / "e.yaml"
    head = "robot: serial6\nlogs: [a.csv]\n"
    file.write_text(head + "gains: {total_mass: 24.3}\n")
    assert read_experiment(file).gains.scale == TotalMass(24.3)
    file.write_text(head + "gains: {unknown: none, total_mass: {kg: 12, bodies: [B5, B6]}}\n")
    settings = read_experiment(file).gains
    assert settings.scale == TotalMass(12.0, ("B5", "B6"))
    assert settings.checks_only
    file.write_text(head + "gains: {unknown: none}\n")
    with pytest.raises(InputError, match="no motor is listed"):
        read_experiment(file)
    file.write_text(head + "gains: {total_mass: 0}\n")
    with pytest.raises(InputError, match="is not positive") as caught:
        read_experiment(file)
    assert "line 3" in str(caught.value)
