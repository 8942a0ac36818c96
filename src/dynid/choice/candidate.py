"""Candidate: one set of the settings that are chosen, and how it becomes an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dynid.experiment.experiment import Experiment, LeftOpen
from dynid.mechanism.mechanism import DRIVE_SYMBOLS, Mechanism

# Terms beyond viscous and Coulomb friction that real drives need, from simple to complex.
_MORE = (("Fr",), ("Fl",), ("Fk",), ("Fr", "Fl"), ("Fr", "Fl", "Fk"))
_PLAIN = ("Fv", "Fs")
_DIRECTED = ("Fv+", "Fv-", "Fs+", "Fs-")


@dataclass(frozen=True)
class Candidate:
    """Settings of a fit; None: the rule for a single setting (see `plan_motions`), or the robot's own terms.

    Attributes:
        cutoff: Low-pass on coordinates, in [Hz].
        mask: Whether rows near reversals are dropped.
        velocity: auto, measured or derived.
        friction: Drive terms of every owner.
        single: Owners with other drive terms, and these.
        estimator: wls or consistent.
    """

    cutoff: float | None = None
    mask: bool = True
    velocity: str = "auto"
    friction: tuple[str, ...] | None = None
    estimator: str = "wls"
    single: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def columns(self) -> tuple[object, ...]:
        """What the columns of the fit depend on."""
        return self.friction, self.single

    @property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """All sets of drive terms that some owner has."""
        return tuple(dict.fromkeys([self.friction or (), *(terms for _, terms in self.single)]))

    def drive(self, owners: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Owner -> its drive terms."""
        return dict.fromkeys(owners, self.friction or ()) | dict(self.single)

    @property
    def rows(self) -> tuple[float | None, bool, str]:
        """What the rows of the fit depend on; drive terms only select columns of them."""
        return self.cutoff, self.mask, self.velocity

    def of(self, experiment: Experiment, owners: Iterable[str] = ()) -> Experiment:
        """The experiment with these settings in place of those that are open.

        Args:
            experiment: As the user gave it.
            owners: All joints and motors with drive terms.
        """
        own, mask = experiment.filter, experiment.mask
        own = own if self.cutoff is None else own.changed(cutoff=self.cutoff)
        own = own if self.velocity == "auto" else own.changed(velocity=self.velocity)
        drive = experiment.drive if self.friction is None else self.friction
        if self.single:
            drive = self.drive(owners)
        estimator = experiment.estimator if self.estimator == experiment.estimator else self.estimator
        return experiment.changed(
            filter=own,
            mask=mask if self.mask else mask.changed(speed=0.0),
            drive=drive,
            estimator=estimator,
        )


@dataclass(frozen=True)
class Open:
    """Which settings the user has left open."""

    cutoff: bool
    mask: bool
    velocity: bool
    friction: tuple[tuple[str, ...], ...]
    estimator: bool

    def __bool__(self) -> bool:
        """Whether there is anything to choose."""
        return self.cutoff or self.mask or self.velocity or len(self.friction) > 1 or self.estimator


def open_settings(robot: Mechanism, experiment: Experiment) -> Open:
    """What an experiment leaves open: each key that is given fixes its part.

    Args:
        robot: With the drive terms of the description.
        experiment: As the user gave it.
    """
    fewer = experiment.keep is not None or experiment.essential is not None
    others = experiment.standard is not None or experiment.refine is not None
    own = experiment.estimator
    filtered = experiment.filter.kind != "none"
    return Open(
        cutoff=experiment.filter.cutoff is None and experiment.filter.decimate is None and filtered,
        mask=experiment.mask.speed is None,
        velocity=experiment.filter.velocity == "auto",
        friction=friction_sets(robot) if experiment.drive is None else (),
        estimator=isinstance(own, LeftOpen) and own == "wls" and not fewer and not others,
    )


def friction_sets(robot: Mechanism) -> tuple[tuple[str, ...], ...]:
    """Sets of drive terms to choose from, simple ones first; the robot's own is the first.

    Only where all owners have viscous and Coulomb friction and nothing beyond: other descriptions
    were written with care, and a set for all owners would change their meaning.
    """
    kinds = set(robot.drive.values())
    own = next(iter(kinds), ())
    friction = [symbol for symbol in own if symbol not in ("Ia", "Off")]
    if len(kinds) != 1 or sorted(friction) != sorted(_PLAIN):
        return ()
    rotor = tuple(symbol for symbol in own if symbol == "Ia")
    sets = [own, (*rotor, *_DIRECTED), *((*own, *more) for more in _MORE)]
    return tuple(tuple(symbol for symbol in DRIVE_SYMBOLS if symbol in one) for one in sets)


def with_all_terms(
    robot: Mechanism, sets: tuple[tuple[str, ...], ...], speeds: Mapping[str, float]
) -> Mechanism:
    """The robot with the columns of all sets: each candidate selects its own.

    Args:
        robot: With drive terms of its own.
        sets: Of drive terms; empty: the robot's own.
        speeds: Stribeck speeds of owners that have none, in [rad/s] or [m/s].
    """
    if not sets:
        return robot
    every = {symbol for one in sets for symbol in one}
    terms = tuple(symbol for symbol in DRIVE_SYMBOLS if symbol in every)
    return replace(robot, drive=dict.fromkeys(robot.drive, terms), stribeck={**speeds, **robot.stribeck})


def with_terms(robot: Mechanism, candidate: Candidate) -> Mechanism:
    """The robot with the drive terms of a candidate."""
    if candidate.friction is None:
        return robot
    return replace(robot, drive=candidate.drive(robot.drive))
