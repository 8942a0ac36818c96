"""Exciting trajectories of a UR5: dynid compared with SciPy's SLSQP and finite differences; prints ratios.

`python benchmarks/excitation.py [--starts 10] [--criterion logdet|cond] [--maxiter 15]`. The peer's script
runs unchanged; dynid uses the same random starts. Both are evaluated by the peer's own
objective on its own 200 samples, and by limits on a grid 20 times denser than the peer's, where the
peer's motion is scaled down until it satisfies them. CPU time of one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import sys
import time
from dataclasses import replace
from pathlib import Path

import peers

common = peers.load()
import numpy as np  # noqa: E402
from scipy.optimize import minimize  # noqa: E402

from dynid.excitation.optimal.box import Blocks, Box  # noqa: E402
from dynid.excitation.optimal.criteria import Criterion  # noqa: E402
from dynid.excitation.optimal.families import FourierFamily  # noqa: E402
from dynid.excitation.optimal.paths import TreePath  # noqa: E402
from dynid.excitation.optimal.problem import Information, Problem  # noqa: E402
from dynid.excitation.optimal.search import descend, hop  # noqa: E402
from dynid.info import structural_base, variant  # noqa: E402
from dynid.mechanism.load import load_robot  # noqa: E402
from dynid.mechanism.parameters import parameter_table  # noqa: E402
from dynid.projection.model import MODELS  # noqa: E402

DENSER = 20
clock = time.process_time


def peer_script(criterion: str, maxiter: int) -> dict:
    """The peer's names after its own run."""
    arguments, sys.argv = (
        sys.argv,
        ["x", "--criterion", criterion, "--maxiter", str(maxiter), "--robot", "ur5"],
    )
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return runpy.run_path(str(Path(peers.FOLDER) / "excitation_scipy.py"))
    finally:
        sys.argv = arguments


class Judge:
    """The peer's objective and limits on the dense grid; x are the peer's 66 numbers."""

    def __init__(self, peer: dict) -> None:
        self.peer = peer
        t = np.linspace(0, peer["a_"].period, DENSER * peer["a_"].grid, endpoint=False)
        limits = peer["QM"], peer["VM"], peer["AM"]
        self.dense = [B / limit for B, limit in zip(peer["basis"](t), limits, strict=True)]

    def use(self, x: np.ndarray) -> float:
        """Largest share of a limit on the dense grid."""
        X = x.reshape(self.peer["nv"], -1).T
        return max(float(np.abs(B @ X).max()) for B in self.dense)

    def held(self, x: np.ndarray) -> float:
        """The objective after the motion was made small enough for the dense grid."""
        return float(self.peer["objective"](x / max(1.0, self.use(x))))


def problem_like(peer: dict, criterion: str, per_harmonic: int) -> Problem:
    """The same objective and limits: the peer's base columns and scales, found by their values."""
    robot = variant(load_robot(common.urdf("ur5")[0]), drive=())
    parameters = parameter_table(robot)
    model = MODELS["inverse"]
    base = structural_base(robot, model, parameters, model.directions(robot))
    path, rng = TreePath(robot), np.random.default_rng(1)
    states = rng.normal(size=(3, 100, peer["nv"]))
    own = Information(path, base, np.ones(peer["nv"])).rows_of(path.states(tuple(states)))
    theirs = peer["regressor"](*states)[:, peer["base"]] * peer["scale"]
    theirs = theirs.reshape(100, peer["nv"], -1).transpose(1, 0, 2).reshape(len(own), -1)
    M = np.linalg.lstsq(own, theirs, rcond=None)[0]
    if np.abs(own @ M - theirs).max() > 1e-9 * np.abs(theirs).max():
        raise SystemExit("the two regressors differ: there is nothing to compare")
    a = peer["a_"]
    high = np.repeat([[peer["QM"]], [peer["VM"]], [peer["AM"]], [np.inf]], peer["nv"], axis=1)
    family = FourierFamily(a.harmonics, a.period, resting=False, per_harmonic=per_harmonic)
    blocks = Blocks(family, Box(path.names, -high, high))
    information = Information(path, replace(base, S=base.S @ M), np.ones(peer["nv"]))
    kind = Criterion("condition" if criterion == "cond" else "logdet")
    return Problem(blocks, information, kind, a.n)


def theirs_of(problem: Problem, z: np.ndarray) -> np.ndarray:
    """The peer's 66 numbers: cosines count with the other sign there."""
    x = problem.blocks.coefficients(z).T.copy()
    x[:, 1 + problem.blocks.family.harmonics :] *= -1.0
    return x.ravel()


def ours_of(problem: Problem, x: np.ndarray) -> np.ndarray:
    own = x.reshape(len(problem.blocks.size), -1).copy()
    own[:, 1 + problem.blocks.family.harmonics :] *= -1.0
    return problem.blocks.variables(own.T)


def run(criterion: str, starts: int, maxiter: int, per_harmonic: int) -> None:
    """All starts of one criterion, and the ratios."""
    peer = peer_script(criterion, maxiter)
    judge, problem = Judge(peer), problem_like(peer, criterion, per_harmonic)
    sign = -1.0 if criterion == "logdet" else 1.0
    descend(problem, problem.blocks.random(np.random.default_rng(0)), iterations=3)  # compile
    ratios, gains, worst = [], [], 0.0
    print(f"\n{criterion}: {len(peer['x0'])} variables, peer's SLSQP with {maxiter} iterations")
    print("start   peer s   value (held)   over | dynid s to equal   ratio | dynid in the peer's time   gain")
    rng = np.random.default_rng(0)
    for start in range(starts):
        x0 = peer["x0"] if start == 0 else rng.normal(size=len(peer["x0"])) * 0.05
        began = clock()
        found = minimize(
            peer["objective"], x0, method="SLSQP", constraints=[peer["con"]], options={"maxiter": maxiter}
        )
        seconds = clock() - began
        target = judge.held(found.x)
        ours, reached = time_to(problem, ours_of(problem, x0), target)
        rescue = np.random.default_rng([start, 1])
        while not reached:  # another start counts too: its time is added
            more, reached = time_to(problem, problem.blocks.random(rescue), target)
            ours += more
        best = best_within(problem, ours_of(problem, x0), seconds, start)
        x = theirs_of(problem, best)
        worst = max(worst, judge.use(x))
        value = float(peer["objective"](x))
        gain = target - value if criterion == "logdet" else target / value
        ratios.append(seconds / ours)
        gains.append(gain)
        print(
            f"{start:5d} {seconds:8.3f} {sign * target:13.4f} {100 * (judge.use(found.x) - 1):5.1f} %"
            f" | {ours:12.4f} {seconds / ours:13.1f} x | {sign * value:20.4f} {gain:14.3f}"
        )
    print(f"faster to an equal value: least {min(ratios):.1f} x, median {np.median(ratios):.1f} x")
    what = "units better" if criterion == "logdet" else "times smaller"
    print(f"in the peer's time: least {min(gains):.3f}, median {np.median(gains):.3f} {what}")
    print(f"largest use of a limit on the dense grid by dynid: {worst:.9f}")


def time_to(problem: Problem, z: np.ndarray, target: float) -> tuple[float, bool]:
    """CPU seconds until a descent reaches the target, and whether it does."""
    kind, reached = problem.criterion, False
    sign = -1.0 if kind.larger_is_better else 1.0

    def watch(point) -> bool:
        nonlocal reached
        reached = sign * kind.value(point.G) <= target
        return reached

    began = clock()
    end = descend(problem, z, iterations=400, watch=watch)
    seconds = clock() - began
    return seconds, reached or watch(end.point)


def best_within(problem: Problem, z: np.ndarray, seconds: float, seed: int) -> np.ndarray:
    """The best motion that basin hopping finds in some CPU seconds."""
    end = clock() + seconds

    def late(point) -> bool:
        return clock() > end

    first = descend(problem, z, watch=late).point
    return hop(problem, first, np.random.default_rng([seed, 2]), hops=10_000, watch=late).point.z


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--criterion", choices=("logdet", "cond", "both"), default="both")
    parser.add_argument("--maxiter", type=int, default=15)
    parser.add_argument("--per-harmonic", type=int, default=20)
    options = parser.parse_args()
    for criterion in ("logdet", "cond") if options.criterion == "both" else (options.criterion,):
        run(criterion, options.starts, options.maxiter, options.per_harmonic)


if __name__ == "__main__":
    main()
