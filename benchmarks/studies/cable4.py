"""Free motion of the paper's four-cable robot: accuracy of the default, and errors of the paper's method.

Motions are drawn at random within the robot's limits (tensions of 20 to 200 N, 0.1 m of swing) and let go at
rest; markers at the reference point and at four corners of the platform carry white noise of 0.2 mm, which
makes 0.44 mrad of tilt and 0.35 mrad of turn.

    noise       Monte-Carlo: error of the mean, stated against true deviation, intervals that hold the truth
    bias        without noise: coordinates low-passed at 10 Hz and plain differences, against the default
    excitation  cost C against the number of equilibria and of samples (section 5.1 of the paper)

Run:  python benchmarks/studies/cable4.py [noise|bias|excitation] [--runs 30] [--seed 0]
"""

from __future__ import annotations

import argparse

import numpy as np
from jaxtyping import Float
from tests.free_oscillations import seen_by_markers

from dynid.cases.free_motion.measured_motion import free_limits
from dynid.cases.free_motion.motion_set import FreeSetSettings, Judging
from dynid.cases.free_motion.releases import Releases, Releasing
from dynid.common.arrays import Array
from dynid.dynamics.free_motion import free_motions
from dynid.dynamics.statics import rest
from dynid.excitation.optimal.criteria import Criterion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs
from dynid.problem import as_log
from dynid.statistics.estimate import Estimate

MASS = 10.0
# Per unit mass, as published; products of inertia ten times larger, so that they can be judged.
UNIT = {"M": 1.0, "MX": 0.0016, "MY": -0.0025, "MZ": 0.2, "XX": 0.0563, "YY": 0.0627, "ZZ": 0.0322}
UNIT |= {"XY": 4.8e-4, "XZ": -2.5e-4, "YZ": 3.4e-4}
TRUTH = {f"{symbol}_platform": MASS * value for symbol, value in UNIT.items()}
MARKERS = np.array([[0, 0, 0], [0.2, 0.2, 0.25], [-0.2, 0.2, 0.25], [0.2, -0.2, 0.25], [-0.2, -0.2, 0.25]])
SIGMA = 2e-4  # m
RATE, DURATION, MOTIONS = 100.0, 10.0, 12
# Tables 2 and 3 of the paper: cable lengths [m], displacements of x and y [m].
LENGTHS = np.array(
    [
        [1.66, 1.32, 1.30, 1.52, 1.11, 1.38, 1.19, 1.16, 1.46, 1.43, 1.35, 1.52],
        [1.86, 1.58, 1.26, 1.26, 1.68, 1.39, 1.15, 1.17, 1.16, 1.37, 1.45, 1.12],
        [1.68, 1.99, 1.57, 1.27, 2.19, 1.36, 1.65, 1.63, 1.24, 1.27, 1.42, 1.17],
        [1.41, 1.76, 1.56, 1.50, 1.72, 1.32, 1.65, 1.59, 1.50, 1.30, 1.28, 1.54],
    ]
).T
DISPLACED = (
    1e-3
    * np.array(
        [
            [5.01, 4.34, 39.3, 76.0, 4.22, 25.3, 1.97, 24.9, 43.8, 47.0, 2.37, 96.9],
            [2.21, 7.11, 17.6, 14.4, 7.95, 16.6, 10.9, 9.70, 17.4, 1.51, 11.7, 99.7],
        ]
    ).T
)
FEW_SAMPLES = ((12, 10), (12, 25), (12, 50), (12, 150), (12, 300))
ROBOT = load_robot("cable4")
MAIN = ("MZ/M_platform", "XX/M_platform", "YY/M_platform", "ZZ/M_platform")


def releasing(duration: float = DURATION) -> Releasing:
    """Random releases of the robot within its limits."""
    names = tuple(cable.name for cable in ROBOT.cables)
    return Releasing(ROBOT, TRUTH, free_limits(ROBOT, names), duration, RATE)


def drawn(count: int, seed: int) -> tuple[Releasing, Releases]:
    """Releases that keep the limits."""
    made, rng = releasing(), np.random.default_rng(seed)
    settings = FreeSetSettings(library=count, whole=DURATION)
    releases, _ = Judging(made, Criterion("c003"), settings).library(rng, lambda stage, share: None)
    return made, releases


def motions(seed: int, count: int = MOTIONS) -> Float[Array, "k n 7"]:
    """Poses of random free motions."""
    made, releases = drawn(4 * count, seed)
    some = releases.picked(np.arange(count))
    found = free_motions(made.robot, TRUTH, some.lengths, some.starts, DURATION, RATE)
    return np.moveaxis(found.q, 0, 1)


def recorded(q: Float[Array, "k n 7"], sigma: float, seed: int) -> Log:
    """The log that a camera system writes, one segment per motion."""
    rng = np.random.default_rng(seed)
    k, n, _ = q.shape
    seen = [seen_by_markers(one, MARKERS, sigma, rng) if sigma else one for one in q]
    t = np.concatenate([np.arange(n) / RATE + 2.0 * DURATION * i for i in range(k)])
    return log_from_arrays(
        ROBOT, t, np.concatenate(seen), None, segments=[(i * n, (i + 1) * n) for i in range(k)]
    )


def identified(log: Log, **options: object) -> Estimate:
    """The estimate, together with the true values."""
    experiment = Experiment(robot=ROBOT, **options)
    return identify_logs(ROBOT, [as_log(log, ROBOT, experiment)], (), experiment, truth=TRUTH)


def errors(estimate: Estimate) -> Float[Array, "p"]:
    """Found minus true."""
    truth = estimate.truth or {}
    return np.array([p.value - truth[p.name] for p in estimate.parameters])


def noise(seed: int, runs: int) -> None:
    """Monte-Carlo over marker noise on one set of motions."""
    q = motions(seed)
    found = [identified(recorded(q, SIGMA, 1000 + k)) for k in range(runs)]
    off = np.array([errors(one) for one in found])
    stated = np.array([[p.sigma for p in one.parameters] for one in found])
    truth = found[0].truth or {}
    held = np.array([[p.ci95[0] <= truth[p.name] <= p.ci95[1] for p in one.parameters] for one in found])
    print(f"{runs} runs of {len(q)} motions of {DURATION:g} s, markers {1e3 * SIGMA:g} mm")
    print("parameter        truth      mean error/sigma  stated/true sigma  sigma %   intervals hold")
    for i, p in enumerate(found[0].parameters):
        true_sigma = off[:, i].std(ddof=1)
        mean = off[:, i].mean() / stated[:, i].mean()
        relative = 100.0 * true_sigma / abs(truth[p.name])
        print(
            f"{p.name:16s} {truth[p.name]:9.5f} {mean:12.2f} {stated[:, i].mean() / true_sigma:17.2f}"
            f" {relative:14.3f} {100 * held[:, i].mean():12.0f} %"
        )
    print(f"pooled: {100 * held.mean():.1f} % of the 95 % intervals hold the truth")


def optimised(seed: int, count: int = MOTIONS) -> tuple[Float[Array, "k n 7"], Float[Array, "k c"]]:
    """Poses and lengths of motions that x and y describe well: a set exchanged for a small C."""
    made, rng = releasing(), np.random.default_rng(seed)
    judge = Judging(made, Criterion("c003"), FreeSetSettings(count=count, library=4 * count, whole=DURATION))
    releases, grams = judge.library(rng, lambda stage, share: None)
    chosen, value = judge.exchanged(grams, rng.choice(len(grams), count, replace=False))
    some = releases.picked(chosen)
    found = free_motions(made.robot, TRUTH, some.lengths, some.starts, DURATION, RATE)
    print(f"{count} motions with C = {value:.2f}")
    return np.moveaxis(found.q, 0, 1), some.lengths


def published() -> Float[Array, "k n 7"]:
    """Poses of motions from the paper's tables 2 and 3; smaller where a cable would go slack."""
    made = releasing()
    rests = np.array([rest(made.robot, lengths).q for lengths in LENGTHS])
    releases = made.displaced(rests, DISPLACED)
    for _ in range(10):
        found = free_motions(made.robot, TRUTH, releases.lengths, releases.starts, DURATION, RATE)
        if found.taut.all():
            break
        releases = made.displaced(rests, np.where(found.taut, 1.0, 0.7)[:, None] * releases.by)
    return np.moveaxis(found.q, 0, 1)


def bias(seed: int) -> None:
    """Errors caused by the processing alone, without noise."""
    _biases(optimised(seed)[0])
    print("the same on the motions of the paper's tables 2 and 3")
    _biases(published())


def _biases(q: Float[Array, "k n 7"]) -> None:
    log = recorded(q, 0.0, 0)
    plain = {"decimate": 10, "rows": 49.9}
    fir = {**plain, "kind": "fir", "cutoff": 6.25, "derivative": "central3"}
    free = {"nullspace": "free", "free": ("x", "y")}
    alone = {**free, "lengths": "estimate", "pose": "free"}
    cases: dict[str, dict[str, object]] = {
        "default (rows filtered, 7 points, gtls)": {},
        "tls, pose, no low-pass, 7 points": {"estimator": "tls", "internal": free, "filter": plain},
        "the same, plain central differences": {
            "estimator": "tls",
            "internal": free,
            "filter": {**plain, "derivative": "central3"},
        },
        "tls, pose low-passed, stop band from 10 Hz": {"estimator": "tls", "internal": free, "filter": fir},
        "tls, x and y alone, 7 points": {"estimator": "tls", "internal": alone, "filter": plain},
        "tls, x and y alone, plain differences": {
            "estimator": "tls",
            "internal": alone,
            "filter": {**plain, "derivative": "central3"},
        },
        "paper: tls, x and y alone, stop band from 10 Hz": {
            "estimator": "tls",
            "internal": alone,
            "filter": fir,
        },
    }
    print("error in percent of the value, no noise              s_z       Ixx       Iyy       Izz")
    for name, options in cases.items():
        estimate = identified(log, **options)
        truth = estimate.truth or {}
        shown = [100.0 * (estimate[one].value / truth[one] - 1.0) for one in MAIN]
        print(f"{name:48s}" + "".join(f"{x:10.4f}" for x in shown))


def excitation(seed: int, draws: int = 200, pool: int = 64) -> None:
    """C of random and of exchanged sets against the number of equilibria and of samples, SI."""
    made, rng = releasing(5.0), np.random.default_rng(seed)
    settings = FreeSetSettings(library=pool, whole=5.0)
    releases, _ = Judging(made, Criterion("c003"), settings).library(rng, lambda stage, share: None)
    found = free_motions(made.robot, TRUTH, releases.lengths, releases.starts, 5.0, RATE)
    every = np.arange(len(releases))
    for nullspace in ("free", "orthonormal"):
        print(f"C of sets out of {len(every)} motions of 5 s, null space: {nullspace}")
        print("equilibria  samples   random: median   5 % to 95 %        exchanged")
        for count, samples in ((2, 100), (4, 100), (8, 100), (12, 100), (16, 100), (24, 100), *FEW_SAMPLES):
            own = FreeSetSettings(count=count, samples=samples, whole=5.0, nullspace=nullspace)
            judge = Judging(made, Criterion("c003"), own)
            grams = judge.information(found, every)
            sets = [rng.choice(len(every), count, replace=False) for _ in range(draws)]
            C = judge.values(np.array([grams[one].sum(axis=0) for one in sets]))
            best = min(judge.exchanged(grams, one)[1] for one in sets[:3])
            low, middle, high = np.quantile(C, [0.05, 0.5, 0.95])
            print(f"{count:10d} {samples:8d} {middle:15.1f} {low:12.1f} to {high:6.0f} {best:16.2f}")


def main() -> None:
    """Run the requested studies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("noise", "bias", "excitation", "all"), default="all")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.what in ("noise", "all"):
        noise(asked.seed, asked.runs)
    if asked.what in ("bias", "all"):
        bias(asked.seed)
    if asked.what in ("excitation", "all"):
        excitation(asked.seed)


if __name__ == "__main__":
    main()
