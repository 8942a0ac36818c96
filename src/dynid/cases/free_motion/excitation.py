"""excite_free(): design an optimal set of free motions for a robot on locked cables.

inputs -> starts (journal, processes) -> the best set, simulated again, and its predicted accuracy
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from dynid.cases.free_motion.measured_motion import free_limits, reached
from dynid.cases.free_motion.motion_set import FreeSet, Judging, best_free_set, recorded_information
from dynid.cases.free_motion.releases import Releases, Releasing
from dynid.cases.free_motion.unit_mass import shown_name
from dynid.common.arrays import Array, Float
from dynid.common.batched import single_threaded_blas
from dynid.common.brief import one_line
from dynid.common.errors import InputError
from dynid.common.versions import version_of
from dynid.dynamics.statics import reduced_modes
from dynid.excitation.optimal.checked import LimitUse
from dynid.excitation.optimal.criteria import criterion_of
from dynid.excitation.optimal.multistart import Journal, run_starts
from dynid.experiment.tasks import OF_SERIES, ExciteSettings
from dynid.mechanism.cable import held_body
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table, prior_values

SUBJECT = "free motions on locked cables, which have no series and no efforts"
_SUITED = ("c003", OF_SERIES, SUBJECT)
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class FreeStart:
    """Result of one start; lists, as stored in a journal.

    Attributes:
        value: Of the criterion; first: of the best initial random set.
        worst: Largest used share of a limit over all motions; at most 1.
        lengths, rest, starts, by: See `Releases`.
        tried, diverged: Motions simulated, and those of them dropped because they diverged.
    """

    number: int
    value: float
    first: float
    worst: float
    lengths: list[list[float]]
    rest: list[list[float]]
    starts: list[list[float]]
    by: list[list[float]]
    tried: int = 0
    diverged: int = 0

    def releases(self) -> Releases:
        """As arrays."""
        return Releases(*(np.array(x) for x in (self.lengths, self.rest, self.starts, self.by)))


@dataclass(frozen=True, eq=False)
class FreeExcitation:
    """The best set found.

    Attributes:
        robot: With driven cables; releasing: its locked form, limits and free coordinates.
        found: Releases, motions over the whole time, information.
        starts: All starts; best: number of the one taken.
        frequencies: Of small motions about each equilibrium, shape (k, d), in [Hz].
        names: Parameters per unit mass; gain: sigma of a random set divided by sigma of this set, for rows
            of equal noise; before, after: singular values of W of both sets.
        limits: Every limit with its margin.
    """

    robot: Mechanism
    settings: ExciteSettings
    releasing: Releasing
    found: FreeSet
    starts: tuple[FreeStart, ...]
    best: int
    frequencies: Float[Array, "k d"]
    names: tuple[str, ...]
    gain: Float[Array, "p"]
    before: Float[Array, "p"]
    after: Float[Array, "p"]
    limits: tuple[LimitUse, ...]

    __repr__ = one_line

    @property
    def larger_is_better(self) -> bool:
        """Whether a larger criterion is better."""
        return self.settings.criterion == "logdet"

    @property
    def criterion(self) -> float:
        """As reported."""
        return self._shown(self.found.value)

    @property
    def spread(self) -> Float[Array, "s"]:
        """Values of all starts, as reported, the best first."""
        values = np.sort([start.value for start in self.starts])
        return np.array([self._shown(value) for value in values])

    def _shown(self, cost: float) -> float:
        return -cost if self.larger_is_better else cost


class FreeStarter:
    """Runs starts of one search."""

    def __init__(self, robot: str | Mechanism, settings: ExciteSettings) -> None:
        self.mechanism = load_robot(robot)
        self.settings = settings = settings.suited(*_SUITED)
        values = _prior(self.mechanism)
        cables = tuple(cable.name for cable in self.mechanism.cables)
        limits = free_limits(self.mechanism, cables)
        search = settings.search
        self.releasing = Releasing(
            self.mechanism, values, limits, search.duration, search.rate, settings.payloads
        )
        self.names = tuple(parameter.name for parameter in parameter_table(self.releasing.robot.robot))
        self.criterion = criterion_of(settings.criterion or "", settings.sigma, self.identifiable())
        self.known = np.zeros((len(self.names),) * 2)
        if settings.after:
            self.known = recorded_information(
                self.mechanism, settings.after, self.names, self.releasing.reference, search
            )
        self._streams = np.random.SeedSequence(settings.seed).generate_state(settings.starts, np.uint64)

    def identifiable(self) -> list[str]:
        """Parameters that free motion can identify: all except the reference mass."""
        return [name for name in self.names if name != self.releasing.reference]

    def shown(self) -> tuple[str, ...]:
        """Names of those, per unit mass."""
        body = held_body(self.mechanism)
        table = {parameter.name: parameter for parameter in parameter_table(self.releasing.robot.robot)}
        return tuple(shown_name(table[name], body) for name in self.identifiable())

    def run(self, number: int) -> FreeStart:
        """The start of that number."""
        with single_threaded_blas():
            best = best_free_set(
                self.releasing,
                self.criterion,
                self.settings.search,
                int(self._streams[number]),
                known=self.known,
            )
        lengths, rest, starts, by = (
            getattr(best.releases, field.name).tolist() for field in fields(Releases)
        )
        worst, counts = float(best.use.max()), (best.tried, best.diverged)
        return FreeStart(number, best.value, best.first, worst, lengths, rest, starts, by, *counts)


def excite_free(
    robot: str | Mechanism,
    settings: ExciteSettings | None = None,
    *,
    journal: Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> FreeExcitation:
    """The best of many sets of free motions within the limits.

    Args:
        robot: Built-in name or robot file, with cables and a prior of the platform: predicting tensions
            needs a mass.
        journal: File of finished starts; an interrupted run continues from there.
        jobs: Number of processes.
        cluster: Address of a Dask scheduler instead.
        progress: Called with the stage and the fraction completed, 0 to 1.
    """
    settings = (settings or ExciteSettings()).suited(*_SUITED)
    starter = FreeStarter(robot, settings)
    name = robot.name if isinstance(robot, Mechanism) else robot
    book = Journal(journal, _asked(starter, name), lambda document: FreeStart(**document))
    starts = run_starts(
        FreeStarter,
        (robot, settings),
        settings.starts,
        book,
        jobs=jobs,
        cluster=cluster,
        progress=progress,
        starter=starter,
        label="set",
    )
    best = min(starts, key=lambda start: start.value)
    with single_threaded_blas(), book.without_result():
        return _finished(starter, starts, best)


def _prior(mechanism: Mechanism) -> dict[str, float]:
    """Parameters used to predict motions and tensions; entries without a prior are zero."""
    values = prior_values(mechanism)
    held = {cable.body_to for cable in mechanism.cables} & set(mechanism.bodies)
    missing = [body for body in sorted(held) if not values.get(f"M_{body}")]
    if missing:
        raise InputError(
            f"the mass of '{missing[0]}' is unknown, so its motion and cable tensions cannot be predicted",
            file=mechanism.file,
            place=f"bodies.{missing[0]}",
            remedy="give approximate values: prior: {M: ..., com: [...], XX: ..., YY: ..., ZZ: ...}",
        )
    return values


def _asked(starter: FreeStarter, robot: str) -> Mapping[str, Any]:
    file = starter.mechanism.file
    text = repr((file and Path(file).read_bytes(), starter.releasing.robot.values, starter.known.tolist()))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"robot": robot, "inputs": digest, **starter.settings.of_search, "dynid": version_of()}


def _finished(starter: FreeStarter, starts: tuple[FreeStart, ...], best: FreeStart) -> FreeExcitation:
    """The best set simulated again, its frequencies, and its gain over a random set."""
    releasing, settings = starter.releasing, starter.settings
    judging = Judging(releasing, starter.criterion, settings.search, starter.known)
    chosen = judging.proved(best.releases(), best.first)
    if chosen.use.max() > 1.0:
        raise InputError(
            f"a motion of the set uses {100 * chosen.use.max():.4g} % of a limit",
            remedy="use shorter motions or wider limits",
        )
    # Rows per unit of free coordinates differ in noise; with orthonormal ones the sigmas are comparable.
    even = Judging(releasing, starter.criterion, settings.search.changed(nullspace="orthonormal"))
    drawn = judging.random_set(np.random.default_rng(settings.seed))
    identified = [starter.names.index(name) for name in starter.identifiable()]
    sets = (releasing.over(drawn, settings.search.duration)[0], chosen.motions)
    before, after = (
        _sigmas(even.information(motions, np.arange(motions.q.shape[1])).sum(axis=0), identified)
        for motions in sets
    )
    squares, _ = reduced_modes(releasing.robot, chosen.releases.rest)
    return FreeExcitation(
        robot=starter.mechanism,
        settings=settings,
        releasing=releasing,
        found=chosen,
        starts=starts,
        best=best.number,
        frequencies=np.sqrt(np.maximum(squares, 0.0)) / (2.0 * np.pi),
        names=starter.shown(),
        gain=before / after,
        before=_singular(judging.information(sets[0], np.arange(len(drawn))).sum(axis=0)),
        after=_singular(chosen.information),
        limits=_uses(releasing, chosen),
    )


def _sigmas(G: Float[Array, "p p"], at: list[int]) -> Float[Array, "t"]:
    """Standard deviations of the parameters `at`, for rows of unit noise."""
    return np.asarray(np.sqrt(np.diag(np.linalg.pinv(G[np.ix_(at, at)], hermitian=True))))


def _singular(G: Float[Array, "p p"]) -> Float[Array, "t"]:
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(G)[::-1][:-1], 0.0)))


def _range(x: Float[Array, "n k"]) -> tuple[float, float]:
    """Least and largest value along all motions, also between samples."""
    least, most = reached(x)
    return float(least.min()), float(most.max())


def _uses(releasing: Releasing, free_set: FreeSet) -> tuple[LimitUse, ...]:
    """Tensions of every cable and swings about rest over all motions of the set."""
    uses = []
    for i, name in enumerate(releasing.robot.cables):
        low, high = releasing.limits.tension[i].tolist()
        least, most = _range(free_set.motions.tensions[:, :, i])
        room = (least - low) / low if np.isinf(high) else 2.0 * min(least - low, high - most) / (high - low)
        uses.append(LimitUse(name, "tension [N]", low, high, least, most, 100.0 * room))
    positions = releasing.robot.robot.positions
    for at, bound in releasing.limits.swing.items():
        least, most = _range(free_set.motions.q[:, :, at] - free_set.releases.rest[:, at])
        left = 100.0 * (1.0 - max(-least, most) / bound)
        uses.append(LimitUse(positions[at], "swing about rest [m]", -bound, bound, least, most, left))
    for at, (low, high) in releasing.limits.place.items():
        least, most = _range(free_set.motions.q[:, :, at])
        left = 200.0 * min(least - low, high - most) / (high - low)
        uses.append(LimitUse(positions[at], "place [m]", low, high, least, most, left))
    return tuple(uses)
