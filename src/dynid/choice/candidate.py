"""Candidates: sets of the settings that are chosen, and how they become experiments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dynid.experiment.experiment import Experiment, LeftOpen
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS, FRICTION_SETS, NO_FRICTION, PLAIN_FRICTION, ROTOR
from dynid.mechanism.mechanism import Mechanism
from dynid.statistics.estimate_parts import Candidate

_SINGLE, _OWNER = "; ", ": "  # between terms of all drives and those of single ones, and behind their names


def rows_of(candidate: Candidate) -> tuple[float | None, str, str]:
    """What the rows of its fit depend on; drive terms only select columns of them."""
    return candidate.cutoff, candidate.mask, candidate.velocity


def drive_of(candidate: Candidate, owners: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Owner -> its drive terms: those of all drives, and those of single ones."""
    common, *single = candidate.friction.split(_SINGLE)
    others = (part.rpartition(_OWNER) for part in single)
    return dict.fromkeys(owners, tuple(common.split())) | {
        name: tuple(terms.split()) for name, _, terms in others
    }


def with_single(candidate: Candidate, single: Mapping[str, tuple[str, ...]]) -> Candidate:
    """The candidate with other terms of some drives; unchanged if their names cannot be written."""
    if any(_SINGLE in name for name in single):
        return candidate
    texts = (f"{name}{_OWNER}{' '.join(terms)}" for name, terms in single.items())
    return replace(candidate, friction=_SINGLE.join([candidate.friction, *texts]))


def applied(candidate: Candidate, experiment: Experiment, owners: Iterable[str] = ()) -> Experiment:
    """The experiment with the settings of a candidate in place of those that are open.

    Args:
        candidate: Settings.
        experiment: As the user gave it.
        owners: All joints and motors with drive terms.
    """
    filtering, mask = experiment.filter, experiment.mask
    filtering = filtering if candidate.cutoff is None else filtering.changed(cutoff=candidate.cutoff)
    filtering = filtering if candidate.velocity == "auto" else filtering.changed(velocity=candidate.velocity)
    same = candidate.estimator == experiment.estimator
    drive = tuple(candidate.friction.split()) if candidate.friction else experiment.drive
    if _SINGLE in candidate.friction:
        drive = drive_of(candidate, owners)
    return experiment.changed(
        filter=filtering,
        mask=mask if candidate.mask == "reversals" else mask.changed(speed=0.0),
        drive=drive,
        estimator=experiment.estimator if same else candidate.estimator,
    )


def open_settings(robot: Mechanism, experiment: Experiment) -> frozenset[str]:
    """Settings of a candidate that an experiment leaves open: each key that is given fixes its part.

    Args:
        robot: With the drive terms of the description.
        experiment: As the user gave it.
    """
    fewer = experiment.keep is not None or experiment.essential is not None
    others = experiment.standard is not None or experiment.refine is not None
    chosen = experiment.estimator
    filtered = experiment.filter.kind != "none"
    left = {
        "cutoff": experiment.filter.cutoff is None and experiment.filter.decimate is None and filtered,
        "mask": experiment.mask.speed is None,
        "velocity": experiment.filter.velocity == "auto",
        "friction": experiment.drive is None and bool(friction_choices(robot)),
        "estimator": isinstance(chosen, LeftOpen) and chosen == "wls" and not fewer and not others,
    }
    return frozenset(name for name, is_open in left.items() if is_open)


def friction_choices(robot: Mechanism) -> tuple[tuple[str, ...], ...]:
    """Sets of drive terms to choose from, simple ones first; the robot's own is the first.

    Only where all owners have viscous and Coulomb friction and nothing beyond: other descriptions
    were written with care, and a set for all owners would change their meaning.
    """
    kinds = set(robot.drive.values())
    default = next(iter(kinds), ())
    friction = [symbol for symbol in default if symbol not in NO_FRICTION]
    if len(kinds) != 1 or sorted(friction) != sorted(PLAIN_FRICTION):
        return ()
    rotor = tuple(symbol for symbol in default if symbol in ROTOR)
    plain = set(PLAIN_FRICTION)
    sets = [(*(default if plain <= set(terms) else rotor), *terms) for terms in FRICTION_SETS]
    return tuple(tuple(symbol for symbol in DRIVE_SYMBOLS if symbol in symbols) for symbols in sets)


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
    every = {symbol for symbols in sets for symbol in symbols}
    terms = tuple(symbol for symbol in DRIVE_SYMBOLS if symbol in every)
    return replace(robot, drive=dict.fromkeys(robot.drive, terms), stribeck={**speeds, **robot.stribeck})


def with_terms(robot: Mechanism, candidate: Candidate) -> Mechanism:
    """The robot with the drive terms of a candidate."""
    if not candidate.friction:
        return robot
    return replace(robot, drive=drive_of(candidate, robot.drive))
