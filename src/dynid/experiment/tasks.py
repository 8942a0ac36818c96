"""What an experiment file can ask for besides an identification: a motion, a comparison, an export.

Each is one section of the file, and the options of one command: `dynid excite`, `compare` and `export`.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import to_builtins

from dynid.common.entry import Entry, plain_entry
from dynid.common.errors import InputError
from dynid.common.settings import Count, Positive, Settings, Whole

# Options without meaning for free motions on locked cables, and for a robot with motors.
OF_SERIES = (
    *("family", "terms", "period", "hops", "noise", "rate", "repeats", "margin", "ties", "along"),
    *("prior", "home", "floor", "collisions", "clearance", "controllers", "controller_rate"),
)
OF_FREE_MOTION = ("search",)
DRIVEN = "an actuated robot; use starts and period"
_OF_FILES = ("controllers", "controller_rate", "out")


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
        noise: Standard deviation of the effort noise, one or per actuator; empty: see `inputs.noise_of`.
        rate: Sampling rate of the recording, in [Hz]; None: see `excitation.recorder`.
        repeats: Recorded periods.
        margin: Unused share of every limit.
        payloads: Mounted on the robot. ties: of the robot file, applied.
        along: Body whose pose is planned, on a closed-loop robot; empty: independent joints.
        prior: File of parameter values used to predict efforts; empty: the priors of the description.
        home: Pose of rest at which a run begins and ends, one value per moved coordinate, in [rad] or [m];
            empty: the start pose of the description.
        floor: Its height above the origin of the base frame, opposite to gravity, in [m]; none: not checked;
            None: as high as the description lets it be, see `excitation.floor`.
        collisions: Whether bodies keep apart from each other and from the floor.
        clearance: Smallest distance between their surfaces, and to the floor, in [m].
        after: Existing results or logs: the new motion complements their information.
        search: Of free motions: settings of each start; a number is the count of motions.
        controllers: Formats in which the run is written too; controller_rate: their rate, in [Hz]; None:
            usual for each.
        out: Folder to write; None is results/<name>_excitation.
    """

    _title: ClassVar[str] = "excite"
    _paths: ClassVar[tuple[str, ...]] = ("prior", "after", "out")

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
    floor: float | Literal["none"] | None = None
    collisions: bool = True
    clearance: Annotated[float, msgspec.Meta(ge=0)] = 0.01
    after: tuple[str, ...] = ()
    search: FreeSetSettings = FreeSetSettings()
    controllers: tuple[str, ...] = ()
    controller_rate: Positive | None = None
    out: str | None = None

    @property
    def of_search(self) -> dict[str, Any]:
        """Settings that decide which motion is found, as plain values; the others are of its files."""
        kept = [name for name in self.__struct_fields__ if name not in _OF_FILES]
        return {name: to_builtins(getattr(self, name)) for name in kept}

    def without_files(self) -> ExciteSettings:
        """Itself: settings of files are refused where nothing is written."""
        for name in _OF_FILES:
            if name in self.tree():
                raise InputError(
                    f"'{name}' is about the files of the motion, and nothing is written here",
                    place=name,
                    remedy="leave it out, and write them with excite(...).save(folder, controllers=[...])",
                )
        return self

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


class CompareSettings(Settings, frozen=True):
    """Which results, or which fits of an experiment, are compared.

    Attributes:
        results: Finished results; that of the experiment itself comes before them. None: fits of the
            experiment with other drive terms, estimators or models.
        drives: Sets of drive terms; friction: the common sets too.
        folds: Of the cross-validation; None: see `compare_logs`.
        last: Hold out only this last share of each log instead.
        logs: That all results predict.
        payloads: Mounted in these logs; none: see `validate_result`.
        speeds: At which friction of results is compared, in [rad/s] or [m/s].
        out: Folder to write; None is beside the result.
    """

    _title: ClassVar[str] = "compare"
    _alone: ClassVar[str] = "results"
    _paths: ClassVar[tuple[str, ...]] = ("results", "logs", "out")

    results: tuple[str, ...] = ()
    drives: tuple[tuple[str, ...], ...] = ()
    friction: bool = False
    estimators: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    folds: Annotated[int, msgspec.Meta(ge=2)] | None = None
    last: Positive | None = None
    logs: tuple[str, ...] = ()
    payloads: tuple[str, ...] = ()
    speeds: tuple[Positive, ...] = ()
    out: str | None = None

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """One result without a list."""
        return _listed(entries, "results")

    def check(self) -> None:
        """Options that have no effect on what is compared."""
        fits = ("drives", "friction", "estimators", "models", "folds", "last")
        for name in fits if self.results else ():
            if getattr(self, name):
                raise InputError(
                    f"'{name}' does not apply to finished results, which are not fitted again",
                    place=name,
                    remedy="leave it out, or compare fits of an experiment",
                )
        for name in () if self.results else ("logs", "payloads", "speeds"):
            if getattr(self, name):
                raise InputError(
                    f"'{name}' applies to finished results; an experiment has its own robot and logs",
                    place=name,
                    remedy="leave it out, or name results",
                )
        if self.payloads and not self.logs:
            raise InputError(
                "'payloads' needs a log that the results predict",
                place="payloads",
                remedy="name it under `logs`",
            )
        if self.folds is not None and self.last is not None:
            raise InputError(
                "'folds' does not apply to 'last', which makes a single split",
                place="folds",
                remedy="leave one of them out",
            )


class ExportSettings(Settings, frozen=True):
    """A result in the formats of other programs; see `dynid.export`.

    Attributes:
        to: Formats.
        result: A finished result; None: that of the experiment.
        not_physical: What to do if no real bodies have the base parameters.
        payload: Identified payloads as links of their own, merged into their carriers, or left out.
        replay: Logs that the written MJCF is to be simulated with.
        out: Folder to write; None is <result>-export, beside the result.
    """

    _title: ClassVar[str] = "export"
    _alone: ClassVar[str] = "to"
    _paths: ClassVar[tuple[str, ...]] = ("result", "replay", "out")

    to: tuple[str, ...]
    result: str | None = None
    not_physical: Literal["noise", "refuse", "nearest", "mark"] = "noise"
    payload: Literal["link", "merge", "leave-out"] = "link"
    replay: tuple[str, ...] = ()
    out: str | None = None

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """One format without a list."""
        return _listed(entries, "to")

    def check(self) -> None:
        """No format."""
        if not self.to:
            raise InputError("no format is named", place="to", remedy="e.g. to: [urdf]")


def _listed(entries: dict[str, Entry], name: str) -> dict[str, Entry]:
    """With a single text of this name as a list."""
    given = entries.get(name)
    if given is not None and isinstance(given.value, str):
        return {**entries, name: plain_entry([given.text()], like=given)}
    return entries
