"""Payload from joint efforts alone: the loaded log minus the efforts predicted by a saved result.

    W_l chi_l = Y - W_0 chi_0            C_l = C(rows) + K C_0 K^T,    K = W_l^+ W_0

chi_0 are the standard values of the result without load, C_0 their covariance. They are known columns of
the same equations, on any robot. Their uncertainty adds to that of the payload, through K. Errors of robot
and payload are then correlated, Cov(chi_l, chi_0) = -K C_0, and a prediction of both must account for it: in
the motion of the loaded log, the payload compensates errors of the robot's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np

from dynid.case import case_of
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.experiment.experiment import Experiment, UnloadedModel
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, parameter_table
from dynid.mechanism.variant import variant
from dynid.motion.log import Log
from dynid.prediction.result_values import (
    StandardValues,
    fitted_places,
    saved,
    standard_values,
    with_result_gains,
)
from dynid.projection.model import model_for, model_named
from dynid.projection.projection import choose_rows
from dynid.statistics.assemble import MANY
from dynid.statistics.effort_prediction import covariance_root
from dynid.statistics.estimate import Estimate
from dynid.statistics.known_errors import KnownErrors


@dataclass(frozen=True, eq=False)
class Unloaded:
    """The robot without load, as a result knows it.

    Attributes:
        robot: Its standard parameters known, except those to be identified again; with all payloads.
        described: The same with only those values known that the description of the result takes as exact.
        names: Known parameters.
        M: Ones where they take a value of the result that has a sigma, shape (p, u), dimensionless.
        words: Where it comes from.
    """

    robot: Mechanism
    described: Mechanism
    names: tuple[str, ...]
    M: Float[Array, "p u"]
    words: str
    estimate: Estimate
    experiment: Experiment
    notices: tuple[Notice, ...] = ()

    @cached_property
    def errors(self) -> KnownErrors:
        """Errors of the known parameters, from the covariance of the result."""
        root = np.asarray(self.M @ covariance_root(self.estimate.covariance))
        dofs = [entry.dof for entry in self.estimate.parameters if entry.dof is not None]
        return KnownErrors(self.names, root, float(np.median(dofs)) if dofs else MANY)

    def logs(self, logs: Sequence[Log]) -> list[Log]:
        """Efforts with the gains of the result, where it has found some."""
        return with_result_gains(logs, self.estimate, self.experiment)

    def loaded_root(
        self, estimate: Estimate, values: StandardValues, parameters: Sequence[Parameter]
    ) -> Float[Array, "p r"]:
        """A root of the covariance of robot and payload together, over standard parameters, SI.

        Args:
            estimate: The payload.
            values: Index of its values among the parameters.
            parameters: Of the robot with what is mounted.
        """
        payload_cov, other, shared = estimate.covariance, self.estimate.covariance, estimate.shared
        if shared is None or shared.shape != (len(payload_cov), len(other)):
            raise InputError(
                "the result does not contain the correlation between errors of the payload and of the result"
                " without load",
                remedy="identify the payload again to write a new result",
            )
        place = {parameter.name: i for i, parameter in enumerate(parameters)}
        known = np.zeros((len(parameters), len(other)))
        known[[place[name] for name in self.names]] = self.M
        together = covariance_root(np.block([[payload_cov, shared], [shared.T, other]]))
        return np.asarray(np.hstack([values.M[:, fitted_places(estimate)], known]) @ together)


def unloaded_model(mechanism: Mechanism, experiment: Experiment) -> Unloaded:
    """The robot of an experiment with the values of its result without load.

    Args:
        mechanism: As the experiment names it; must be the robot of the result.
        experiment: With `unloaded`, and the payloads.
    """
    settings = experiment.unloaded
    if settings is None:
        raise TypeError("the experiment names no result without load")
    estimate, before, robot = saved(settings.result)
    case = case_of(model_named(estimate.model))
    if case.moves_freely or not case.measures_efforts:
        raise InputError(
            f"the result without load is of model '{estimate.model}', which gives no motor efforts",
            file=settings.result,
            place="unloaded",
            remedy="give a result of model inverse, power or energy",
        )
    if robot.name != mechanism.name:
        raise InputError(
            f"the result without load is of robot '{robot.name}', the experiment of '{mechanism.name}'",
            file=settings.result,
            place="unloaded",
            remedy=f"give a result of the same robot; if it is the same machine, write name: {robot.name} in"
            " the robot file",
        )
    bare = variant(robot, payloads=())
    parameters = parameter_table(bare)
    model = model_for(bare, estimate.model)
    rows = None if bare.is_closed else choose_rows(model.directions(bare), before.efforts)
    values = standard_values(estimate, bare, parameters, before, model, rows, robot.payloads)
    free = _free([parameter.name for parameter in parameters], settings)
    kept = [i for i, parameter in enumerate(parameters) if parameter.name not in free]
    names = tuple(parameters[i].name for i in kept)
    known = dict(zip(names, values.chi[kept].tolist(), strict=True))
    described = replace(robot, payloads={**robot.payloads, **mechanism.payloads})
    loaded = replace(
        described,
        known={**robot.known, **known},
        bodies={name: replace(body, known={}) for name, body in robot.bodies.items()},
    )
    return Unloaded(
        robot=loaded,
        described=described,
        names=names,
        M=values.M[np.ix_(kept, fitted_places(estimate))],
        words=f"{len(names)} parameters of the robot from {settings.result}"
        + (f"; identified again: {', '.join(free)}" if free else ""),
        estimate=estimate,
        experiment=before,
        notices=_unknown(estimate),
    )


def check_loaded(logs: Sequence[Log], experiment: Experiment) -> None:
    """Refuse logs in which no payload is mounted: there is nothing to find."""
    for log in logs:
        if not log.payloads:
            raise InputError(
                f"log '{log.name}' has no payload, but the parameters of the robot come from the result"
                " without load",
                file=experiment.file or log.file,
                place="unloaded",
                remedy="name it: logs: [{file: ..., payload: box}], payloads: {box: {body: ...}}",
            )


def _free(names: Sequence[str], settings: UnloadedModel) -> list[str]:
    """Parameters that are identified again."""
    for glob in settings.free:
        if not any(fnmatchcase(name, glob) for name in names):
            raise InputError(
                f"'{glob}' matches no parameter of the result without load",
                place="unloaded.free",
                remedy='e.g. free: ["Off_*"]',
            )
    return [name for name in names if any(fnmatchcase(name, glob) for glob in settings.free)]


def _unknown(estimate: Estimate) -> tuple[Notice, ...]:
    names = list(estimate.not_identifiable)
    if not names:
        return ()
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return (notice("unloaded-incomplete", names=", ".join(names[:6]) + more),)
