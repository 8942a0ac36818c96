"""The description of the robot as an unknown: uncertain quantities are counted, unknown ones are found.

    C_chi  =  C_chi (description exact)  +  J C_x J^T,        J = d chi / dx

C_x is diagonal for quantities that are only uncertain (`sigma:` of a robot file), and the covariance of the
calibration for those that are unknown (`unknown:` of an experiment).

The residuals of a description that is off contain D dx, D = d(W chi - Y)/dx. The scatter of blocks would
count it a second time, so the first part is that of the residuals that D does not explain (`errors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.experiment.experiment import Experiment
from dynid.experiment.sections import UnknownDescription
from dynid.mechanism.description import TILTS, ZERO, current, zero_names
from dynid.mechanism.mechanism import Mechanism
from dynid.statistics.assemble import MANY, EstimateParts, widened
from dynid.statistics.covariance import CountedErrors
from dynid.statistics.estimate_parts import Description, Quantity
from dynid.unknown import Settled, Task

if TYPE_CHECKING:
    from dynid.fit import Fit
    from dynid.unknowns.calibration import Calibrated

_MAIN = 0.01  # of the variance: smaller shares are not listed


def settle_description(task: Task) -> Settled:
    """Find dimensions, joint zeros and gravity that are unknown, and count those that are uncertain."""
    asked = task.experiment.unknown
    unknown = () if asked is None else asked_names(task.mechanism, asked, task.experiment)
    uncertain = {name: x for name, x in task.mechanism.uncertain.items() if name not in unknown}
    if not unknown and not uncertain:
        return Settled(task)
    if task.mechanism.rebuild is None and any(name in task.mechanism.geometry for name in uncertain):
        return Settled(task)  # a robot that was made from another one: its dimensions have no names
    calibrated = None
    if unknown:
        from dynid.unknowns.calibration import calibrate

        calibrated = calibrate(task, unknown, tuple(uncertain))
        task = calibrated.task
    counted = _Counted(task.mechanism, uncertain, calibrated)
    return Settled(
        task,
        {} if calibrated is None else calibrated.choices(counted.covariance),
        () if calibrated is None else calibrated.notices,
        widen=counted.widen,
        counted_errors=counted.errors if uncertain else None,
        description=counted.description,
    )


def asked_names(mechanism: Mechanism, asked: UnknownDescription, experiment: Experiment) -> tuple[str, ...]:
    """Quantities that an experiment leaves open, by the names of `dynid.mechanism.description`."""
    names: list[str] = []
    sizes = tuple(mechanism.geometry) if mechanism.rebuild is not None else ()
    for kind, patterns, valid, before in (
        ("symbols", asked.symbols, sizes, ""),
        ("zeros", asked.zeros, zero_names(mechanism), ZERO),
    ):
        for pattern in patterns:
            matched = [name for name in valid if fnmatchcase(name, pattern)]
            if not matched:
                raise InputError(
                    f"unknown: '{pattern}' is none of the {_WHAT[kind]} of robot '{mechanism.name}'"
                    + nearest(pattern, valid),
                    file=experiment.file,
                    place=f"unknown.{kind}",
                    remedy=f"name some of {', '.join(valid[:12])}" if valid else "leave it out",
                )
            names += [before + name for name in matched]
    if asked.gravity is not None:
        if not np.any(mechanism.gravity):
            raise InputError(
                "unknown: the robot is described without gravity, so it has no direction",
                file=experiment.file,
                place="unknown.gravity",
                remedy="give `gravity:` in the robot file",
            )
        names += TILTS
    return tuple(dict.fromkeys(names))


_WHAT = {"symbols": "dimensions", "zeros": "measured hinges and slides"}


@dataclass(frozen=True, eq=False)
class _Counted:
    """Quantities whose uncertainty is counted in that of the parameters.

    Attributes:
        uncertain: Not searched -> standard deviation, in [m] or [rad].
        calibrated: What was searched; None: nothing.
    """

    mechanism: Mechanism
    uncertain: dict[str, float]
    calibrated: Calibrated | None
    _known: list[tuple[object, tuple[Float[Array, "v k"], tuple[str, ...]]]] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """All quantities counted, those that were searched first."""
        return (*(() if self.calibrated is None else self.calibrated.names), *self.uncertain)

    @cached_property
    def covariance(self) -> Float[Array, "k k"]:
        """Of all quantities. What was searched has moved with the error of what is uncertain."""
        given = np.diag([x**2 for x in self.uncertain.values()])
        if self.calibrated is None:
            return np.asarray(given, dtype=float)
        C, moved = self.calibrated.covariance, self.calibrated.moved
        across = moved @ given
        return np.asarray(np.block([[C + across @ moved.T, across], [across.T, given]]))

    def slopes(self, fit: Fit) -> tuple[Float[Array, "v k"], tuple[str, ...]]:
        """D parameter / d quantity, kept for a second call on the same fit."""
        from dynid.checks.description_effects import estimate_slopes

        if not self._known or self._known[0][0] is not fit.data:
            self._known[:] = [(fit.data, estimate_slopes(fit, self.names))]
        return self._known[0][1]

    def errors(self, fit: Fit) -> CountedErrors | None:
        """Columns of what is uncertain but not searched: its misfit is no noise of the rows."""
        from dynid.checks.description_effects import slope_system

        if fit.data.equations is not None:
            return None  # rewritten rows, whose slopes are not known
        _, failed = self.slopes(fit)
        sigma = {name: x for name, x in self.uncertain.items() if name not in failed}
        if not sigma:
            return None
        system = slope_system(fit, tuple(sigma))
        if len(system.groups) < len(fit.data.system.groups):
            return None  # equations of some joint have no slope at any pose
        return CountedErrors(system, np.array(list(sigma.values())))

    def widen(self, parts: EstimateParts, fit: Fit) -> EstimateParts:
        """The parameters with J C_x J^T added to their covariance."""
        J, failed = self.slopes(fit)
        added = J @ self.covariance @ J.T
        dof = MANY if self.calibrated is None else self.calibrated.dof
        count = len(self.names)
        words = f"{count} {'quantity' if count == 1 else 'quantities'} of the description as unknowns"
        wider = widened(parts, 0.5 * (added + added.T), dof, words)
        return replace(wider, warnings=(*wider.warnings, *_failed(failed)))

    def description(self, fit: Fit) -> Description:
        """What the result says about these quantities."""
        J, _ = self.slopes(fit)
        C, robot = self.covariance, fit.task.mechanism
        quantities = {
            name: self._quantity(name, float(np.sqrt(C[k, k])), current(robot, name))
            for k, name in enumerate(self.names)
            if name not in TILTS
        }
        tilts = [k for k, name in enumerate(self.names) if name in TILTS]
        parameters = tuple(parameter.name for parameter in fit.linear_parts.parameters)
        return Description(
            symbols={name: quantity for name, quantity in quantities.items() if name in robot.geometry},
            zeros={n.removeprefix(ZERO): q for n, q in quantities.items() if n not in robot.geometry},
            gravity=tuple(float(x) for x in robot.gravity),
            gravity_sigma=float(np.sqrt(max(C[k, k] for k in tilts))) if tilts else None,
            names=self.names,
            parameters=parameters,
            slopes=J,
            covariance=C,
            shares=_shares(fit.linear_parts, J, C, self.names),
        )

    def _quantity(self, name: str, sigma: float, value: float) -> Quantity:
        if self.calibrated is None or name not in self.calibrated.names:
            return Quantity(value, sigma, value)
        seen = name not in self.calibrated.unseen
        given = self.calibrated.given[name]
        words = self.calibrated.unseen.get(name, "")
        return Quantity(value, sigma, given, found=True, identifiable=seen, combination=words)


def _shares(
    parts: EstimateParts, J: Float[Array, "v k"], C: Float[Array, "k k"], names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Share of each quantity in the variance of each parameter, largest first.

    Quantities that are correlated share what they have in common: J_k (C J^T)_k.
    """
    shares: dict[str, dict[str, float]] = {}
    through = J @ C
    for i, entry in enumerate(parts.parameters):
        if not entry.sigma:
            continue
        part = J[i] * through[i] / entry.sigma**2
        order = np.argsort(-np.abs(part), kind="stable")
        listed = {names[k]: float(part[k]) for k in order if abs(part[k]) > _MAIN}
        if listed:
            shares[entry.name] = listed
    return shares


def _failed(names: Sequence[str]) -> tuple[Notice, ...]:
    return (notice("symbol-not-counted", names=", ".join(names)),) if names else ()
