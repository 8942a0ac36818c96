"""The best set of free motions: a library of feasible ones, exchange, and perturbed exchange.

Each motion adds its information B^T W, so a set is evaluated by a sum of small matrices, and
exchanging a member costs one eigenvalue problem. This is much better than gradient descent: the
criterion has as many local minima as there are sets [CableRobot, section 5.1].

    C = (s_1 + 1) / s_9,      s the singular values of W along all motions      [CableRobot, eq. 40]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import InputError, NoResultError
from dynid.dynamics.free_motion import FreeMotions
from dynid.excitation.optimal.criteria import Criterion
from dynid.experiment.estimator_choice import free_motion_defaults
from dynid.experiment.experiment import experiment_from
from dynid.experiment.tasks import FreeSetSettings
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.problem import as_logs, build_system, prepare
from dynid.regressor.regressor import tree_matrix

if TYPE_CHECKING:
    from dynid.cases.free_motion.releases import Kept, Releases, Releasing


_NEIGHBOURS = 5  # of each member, tried in one round
_PROOFS = 8


@dataclass(frozen=True, eq=False)
class FreeSet:
    """A set of free motions and its information.

    Attributes:
        releases: How each motion is started.
        motions: All of them, simulated over the whole time.
        information: Sum of W^T W over the set, columns in the order of the parameter table.
        value: Of the criterion.
        first: Value of the best initial random set.
        use: Largest used share of any limit, per motion, shape (k,).
        tried: Motions simulated in the search; diverged: those discarded because they diverged.
    """

    releases: Releases
    motions: FreeMotions
    information: Float[Array, "p p"]
    value: float
    first: float
    use: Float[Array, "k"]
    tried: int = 0
    diverged: int = 0


def best_free_set(
    releasing: Releasing,
    criterion: Criterion,
    settings: FreeSetSettings,
    seed: int,
    known: Float[Array, "p p"] | None = None,
) -> FreeSet:
    """One start of the search: library, exchange, perturbed exchange, and a final simulation.

    Args:
        known: W^T W of existing recordings, added to that of every set.
    """
    rng = np.random.default_rng(seed)
    judge = Judging(releasing, criterion, settings, known)
    library = judge.library(rng)
    chosen, first = judge.exchanged_best(rng, library.judged)
    current, grams = library.releases.picked(chosen), library.judged[chosen]
    tried, diverged = library.tried, library.diverged
    for turn in range(settings.rounds):
        near = judge.perturbed(rng, current, settings.rounds - turn)
        tried, diverged = tried + near.tried, diverged + near.diverged
        pool, added = current.joined(near.releases), np.concatenate([grams, near.judged])
        picked, _ = judge.exchanged(added, np.arange(settings.count))
        current, grams = pool.picked(picked), added[picked]
    return replace(judge.proved(current, first), tried=tried, diverged=diverged)


class Judging:
    """Information of motions, and exchanges that improve the criterion of their sum."""

    def __init__(
        self,
        releasing: Releasing,
        criterion: Criterion,
        settings: FreeSetSettings,
        known: Float[Array, "p p"] | None = None,
    ) -> None:
        self.releasing, self.criterion, self.settings = releasing, criterion, settings
        robot = releasing.robot
        truth = np.array([robot.values.get(entry.name, 0.0) for entry in parameter_table(robot.robot)])
        # Free motion does not determine the scale: no information along the parameter vector itself.
        across = np.linalg.svd(truth[None])[2][1:].T
        # Sigma of single parameters is per unit of the reference mass, whose column is omitted.
        names = [entry.name for entry in parameter_table(robot.robot)]
        others = np.delete(np.eye(len(truth)), names.index(releasing.reference), axis=1)
        self._seen = others if criterion.name == "sigma" else across
        self._known = np.zeros((len(truth),) * 2) if known is None else known

    def information(self, motions: FreeMotions, which: Int[Array, "m"]) -> Float[Array, "m p p"]:
        """W^T W of some of the motions over the samples used."""
        robot, free = self.releasing.robot, self.releasing.motion
        n = round(self.settings.duration * self.settings.rate)
        at = np.linspace(0, n, self.settings.samples, endpoint=False).astype(int)
        k = len(which)
        picked = (x[at][:, which] for x in (motions.q, motions.dq, motions.ddq))
        q, dq, ddq = (x.reshape(len(at) * k, x.shape[2]) for x in picked)
        N = robot.still.freedoms.tangent(q)
        B = free.along(N, self.releasing.free) if self.settings.nullspace == "free" else N
        W = np.swapaxes(B, 1, 2) @ tree_matrix(robot.robot, q, dq, ddq)
        rows = np.moveaxis(W.reshape(len(at), k, *W.shape[1:]), 1, 0).reshape(
            k, len(at) * W.shape[1], W.shape[2]
        )
        return np.asarray(np.swapaxes(rows, 1, 2) @ rows)

    def values(self, grams: Float[Array, "m p p"]) -> Float[Array, "m"]:
        """The minimised value, for many sums at once."""
        return self.criterion.costs(self._seen.T @ (grams + self._known) @ self._seen)

    def library(self, rng: np.random.Generator) -> Kept:
        """Feasible motions with their information."""
        rests = self.releasing.rests(rng, self.settings.library)
        usable = self.releasing.kept(self.releasing.drawn(rng, rests), self.information)
        if not len(usable.releases):
            raise NoResultError(
                f"none of {usable.tried} random free motions satisfies the limits ({usable.diverged}"
                " diverged); widen `limits:`, or check the mass in `prior:`"
            )
        return usable

    def exchanged_best(
        self, rng: np.random.Generator, grams: Float[Array, "k p p"]
    ) -> tuple[Int[Array, "c"], float]:
        """The best set reached by exchanges from random sets, and the value of the best random set."""
        count = self.settings.count
        few = len(grams) < count
        drawn = [rng.choice(len(grams), count, replace=few) for _ in range(self.settings.restarts)]
        first = float(self.values(np.array([grams[subset].sum(axis=0) for subset in drawn])).min())
        results = [self.exchanged(grams, subset) for subset in drawn]
        return min(results, key=lambda pair: pair[1])[0], first

    def exchanged(
        self, grams: Float[Array, "k p p"], chosen: Int[Array, "c"]
    ) -> tuple[Int[Array, "c"], float]:
        """Replace members one by one by the best of the pool until none improves.

        Members come in the order of the pool: sets that several starts reach are equal to the last bit.
        """
        chosen = np.array(chosen)
        value = float(self.values(grams[chosen].sum(axis=0)[None])[0])
        improved = True
        while improved:
            improved = False
            for i in range(len(chosen)):
                rest = grams[np.delete(chosen, i)].sum(axis=0)
                values = self.values(rest + grams)
                values[np.delete(chosen, i)] = np.inf  # every motion about a different equilibrium
                best = int(np.argmin(values))
                if values[best] < value - 1e-9 * abs(value):
                    chosen[i], value, improved = best, float(values[best]), True
        return np.sort(chosen), value

    def perturbed(self, rng: np.random.Generator, current: Releases, left: int) -> Kept:
        """Feasible motions near those of a set; the fewer rounds remain, the nearer."""
        size = left / self.settings.rounds
        rest, by = (np.repeat(x, _NEIGHBOURS, axis=0) for x in (current.rest, current.by))
        moved_rest, fit = self.releasing.nearby(rng, rest, 0.5 * size)
        change = 1.0 + 0.3 * rng.normal(size=(len(by), 1))
        turned = change * by + 0.1 * size * self.releasing.swings * rng.normal(size=by.shape)
        most = self.releasing.swings
        return self.releasing.kept(
            self.releasing.displaced(moved_rest[fit], np.clip(turned, -most, most)[fit]), self.information
        )

    def random_set(self, rng: np.random.Generator) -> Releases:
        """A random feasible set of the same size, the reference for the gain."""
        count = self.settings.count
        rests = self.releasing.rests(rng, 2 * count)
        kept = self.releasing.kept(self.releasing.drawn(rng, rests), self.information).releases
        return kept.picked(np.arange(count) % len(kept))

    def proved(self, releases: Releases, first: float) -> FreeSet:
        """The set as reported: limits checked over the whole duration, information of exact motions."""
        motions, use = self.releasing.over(releases, self.settings.whole)
        for _ in range(_PROOFS):
            if np.all(use <= 1.0):
                break
            releases = self.releasing.smaller(releases, use)
            motions, use = self.releasing.over(releases, self.settings.whole)
        information = self.information(motions, np.arange(len(releases))).sum(axis=0)
        value = float(self.values(information[None])[0])
        return FreeSet(releases, motions, information, value, first, use)


def recorded_information(
    mechanism: Mechanism, logs: Sequence[str], names: Sequence[str], reference: str, search: FreeSetSettings
) -> Float[Array, "p p"]:
    """W^T W of recorded runs, each weighted like one motion of the designed set.

    Args:
        logs: Files of free motion; results contain no rows and are rejected.
        names: Standard parameters in the required order; reference: the mass among them.
        search: Gives the null space and the samples per run.
    """
    for log in logs:
        if Path(log).is_dir() or Path(log).suffix.lower() == ".json":
            raise InputError(
                "is a result, but the information of free motions is in their logs",
                file=log,
                remedy="give the logs used for this result, e.g. --after swing.csv",
            )
    internal = {"nullspace": search.nullspace}
    asked = experiment_from(
        {"robot": mechanism, "logs": list(logs), "model": "internal", "internal": internal}
    )
    experiment = free_motion_defaults(asked)
    read = as_logs(experiment.logs, mechanism, experiment)
    system = build_system(prepare(mechanism, read, experiment))
    factor = system.factor()
    columns = {parameter.name: factor.W[:, i] for i, parameter in enumerate(system.parameters)}
    columns[reference] = -factor.Y  # the rows are relative to the mass
    W = np.column_stack([columns.get(name, np.zeros(len(factor.Y))) for name in names])
    runs = sum(len(log.segments) for log in read)
    samples = factor.n_rows / len(dict.fromkeys(group.name for group in system.groups))
    return np.asarray(W.T @ W * (runs * search.samples / samples))
