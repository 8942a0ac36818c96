"""ExciteSettings: what kind of exciting motion, or of a set of free motions, is searched.

Default assumptions about a recording: sampling rate, effort noise and encoder resolution of a robot.

`excite` (predicted sigma), `simulate` and `rehearse` (achieved sigma) all use these defaults. So
prediction and outcome differ only by chance and by the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.settings import Count, Positive, Settings, Whole
from dynid.excitation.efforts import effort_range
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.report.numbers import number
from dynid.robots.truth import built_in_demo, built_in_free

# Options without meaning for free motions on locked cables, and for a robot with motors.
OF_SERIES = (
    *("family", "terms", "period", "hops", "noise", "rate", "repeats", "margin", "ties", "along"),
    *("prior", "home", "floor", "collisions", "clearance"),
)
OF_FREE_MOTION = ("search",)
DRIVEN = "an actuated robot; use starts and period"


class FreeSetSettings(Settings, frozen=True):
    """Settings of the search for a set of free motions.

    Attributes:
        count: Motions in the set, each about a different equilibrium.
        samples: Samples of each motion used for the criterion.
        duration: Of the part of a motion used for the criterion, in [s].
        whole: Duration over which limits must be satisfied, in [s].
        rate: Of the simulation, in [Hz].
        library: Feasible motions drawn.
        restarts: Random sets from which exchanges begin.
        rounds: Of perturbed exchange.
        nullspace: Directions of the rows: `free` coordinates or `orthonormal`.
    """

    _alone: ClassVar[str] = "count"

    count: Count = 12
    samples: Count = 100
    duration: Positive = 5.0
    whole: Positive = 10.0
    rate: Positive = 100.0
    library: Count = 128
    restarts: Count = 6
    rounds: Whole = 2
    nullspace: Literal["free", "orthonormal"] = "free"


class ExciteSettings(Settings, frozen=True):
    """Settings of the exciting motion, or of a set of free motions.

    Attributes:
        criterion: See `excitation.optimal.criteria`; None: `sigma` with `sigma`, else `logdet`; for free
            motions `c003`, C of the free-motion paper.
        sigma: Parameters of the criterion `sigma`, e.g. ZZ_platform.
        family: fourier, spline or points; terms: harmonics, pieces or points (None: default number).
        period: Duration of the motion, in [s].
        starts: Random initial motions, or searches; hops: perturbed restarts of each.
        noise: Standard deviation of the effort noise, one or per actuator; empty: see `excite.noise_of`.
        rate: Sampling rate of the recording, in [Hz]; None: see `excitation.recorder`.
        repeats: Recorded periods.
        margin: Unused share of every limit.
        payloads: Mounted on the robot. ties: of the robot file, applied.
        along: Body whose pose is planned, on a closed-loop robot; empty: independent joints.
        prior: File of parameter values used to predict efforts; empty: the priors of the description.
        home: Pose of rest at which a run begins and ends, one value per moved coordinate, in [rad] or [m];
            empty: the start pose of the description.
        floor: Height of the floor in the base frame, in [m]; None: unknown.
        collisions: Whether bodies keep apart from each other and from the floor.
        clearance: Smallest distance between their surfaces, and to the floor, in [m].
        after: Existing results or logs: the new motion complements their information.
        search: Of free motions: settings of each start; a number is the count of motions.
    """

    _title: ClassVar[str] = "excite"

    criterion: str | None = None
    sigma: tuple[str, ...] = ()
    family: Literal["fourier", "spline", "points"] = "fourier"
    terms: Count | None = None
    period: Positive = 10.0
    starts: Count = 8
    hops: Whole = 3
    seed: Whole = 0
    noise: tuple[Positive, ...] = ()
    rate: Positive | None = None
    repeats: Count = 1
    margin: Annotated[float, msgspec.Meta(ge=0)] = 0.02
    payloads: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    along: str = ""
    prior: str = ""
    home: tuple[float, ...] = ()
    floor: float | None = None
    collisions: bool = True
    clearance: Annotated[float, msgspec.Meta(ge=0)] = 0.01
    after: tuple[str, ...] = ()
    search: FreeSetSettings = FreeSetSettings()

    def check(self) -> None:
        """A criterion without use for `sigma`, and a margin that leaves nothing."""
        if self.sigma and self.criterion not in (None, "sigma"):
            raise InputError(
                f"sigma needs the criterion 'sigma', not '{self.criterion}'",
                place="sigma",
                remedy="leave out `criterion`, or `sigma`",
            )
        if not self.margin < 0.5:
            raise InputError(
                f"margin {self.margin:g} is not valid", place="margin", remedy="give 0 or more, below 0.5"
            )

    def suited(
        self, usual: str = "logdet", unused: tuple[str, ...] = OF_FREE_MOTION, subject: str = DRIVEN
    ) -> ExciteSettings:
        """With the usual criterion of a robot with motors, or another subject; unused options are refused."""
        for name in self.tree():
            if name in unused:
                raise InputError(f"'{name}' does not apply to {subject}", place=name, remedy="leave it out")
        return self.changed(criterion=self.criterion or ("sigma" if self.sigma else usual))


RATE = 1000.0  # Hz, of robots without a built-in experiment
_SHARE = 0.01  # of the effort limit: noise of a typical torque signal


@dataclass(frozen=True, eq=False)
class Recorder:
    """Rate and sensors of a robot.

    Attributes:
        rate: Sampling rate, in [Hz].
        effort_sigma: Standard deviation of the effort noise, shape (a,), in [N m] or [N]; empty: unknown.
        resolution: Encoder resolution of the measured positions, in [rad] or [m]; 0: none.
        source: Origin of these values, as text.
    """

    rate: float
    effort_sigma: tuple[float, ...]
    resolution: float | Float[Array, "m"]
    source: str


def default_recorder(mechanism: Mechanism) -> Recorder:
    """From the built-in experiment if there is one; else 1 kHz and one percent of the effort limits.

    Actuators without a limit get the median of the others.
    """
    free = built_in_free(mechanism)
    label = f"built-in experiment of '{mechanism.name}'"
    if free is not None:
        return Recorder(free.rate, (), 0.0, label)
    demo = built_in_demo(mechanism)
    if demo is not None:
        same = load_robot(mechanism.name).measured_positions == mechanism.measured_positions
        return Recorder(demo.rate, tuple(demo.torque_sigma.tolist()), demo.encoder if same else 0.0, label)
    limits = [effort_range(mechanism, actuator.name) for actuator in mechanism.actuators]
    known = [_SHARE * max(abs(x) for x in span) for span in limits if span is not None]
    known = [value for value in known if 0.0 < value < np.inf]
    if not known:
        return Recorder(RATE, (), 0.0, "no effort limits")
    middle = float(np.median(known))
    sizes = [middle if span is None else _SHARE * max(abs(x) for x in span) for span in limits]
    sigma = tuple(size if 0.0 < size < np.inf else middle for size in sizes)
    return Recorder(RATE, sigma, 0.0, f"{100 * _SHARE:g} % of the effort limits")


def recording_words(
    rate: float,
    effort_sigma: float | Float[Array, "a"] | tuple[float, ...],
    source: str = "",
    units: Iterable[str] = (),
) -> str:
    """Rate and effort noise of a recording as one line of text; `units` are those of the efforts."""
    sizes = np.atleast_1d(np.asarray(effort_sigma, dtype=float))
    noise = "no effort noise"
    if sizes.any():
        low, high = number(float(sizes.min()), 3), number(float(sizes.max()), 3)
        noise = "effort noise " + (low if low == high else f"{low} to {high}")
        noise = " ".join([noise, " or ".join(sorted(set(units), reverse=True))]).rstrip()
    return f"{rate:g} Hz, {noise}" + (f" ({source})" if source else "")
