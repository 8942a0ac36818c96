"""The gain stage of an identification: before it logged efforts, after it efforts with gains applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.cases.wrench_table.tables import refuse_options
from dynid.experiment.experiment import Experiment
from dynid.linear import base_of
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.problem import Progress, prepare
from dynid.projection.model import model_for
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.estimate import Estimate, ParameterEstimate
from dynid.statistics.uncertainty import uncertainty
from dynid.unknowns.gain_rows import GAIN, DriveGains, applied, check_gains, find_gains, nominal_factors


@dataclass(frozen=True, eq=False)
class GainStage:
    """Logs whose efforts have their gains applied, and the gains; None where nobody asked."""

    logs: tuple[Log, ...]
    held_out: tuple[Log, ...]
    gains: DriveGains | None = None

    @property
    def choices(self) -> dict[str, str]:
        """How the gains were found, in words."""
        return {} if self.gains is None else self.gains.choices

    def joined(self, parts: EstimateParts) -> EstimateParts:
        """The parameters with the gains beside them, uncertain together."""
        return parts if self.gains is None else _joined(parts, self.gains)


def gain_stage(
    mechanism: Mechanism,
    logs: Sequence[Log],
    held_out: Sequence[Log],
    experiment: Experiment,
    progress: Progress | None = None,
) -> GainStage:
    """Find the gains that an experiment leaves open, and apply them to its logs."""
    if experiment.gains is None:
        return GainStage(tuple(logs), tuple(held_out))
    if model_for(mechanism, experiment.model, experiment.file).tabular:
        refuse_options(experiment)
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    nominal = nominal_factors(motors, experiment.gains)
    if experiment.gains.checks_only:
        fitted, unseen = ([applied(log, nominal) for log in some] for some in (logs, held_out))
        return GainStage(tuple(fitted), tuple(unseen))
    check_gains(experiment)
    problem = prepare(mechanism, [applied(log, nominal) for log in logs], experiment)
    found = find_gains(problem, base_of(problem, experiment), experiment, progress)
    return GainStage(
        tuple(applied(log, found.factors) for log in logs),
        tuple(applied(log, found.factors) for log in held_out),
        found,
    )


def _joined(parts: EstimateParts, gains: DriveGains) -> EstimateParts:
    u = len(gains.nominal)
    names = [one.name for one in gains.parameters]
    own = {one.name: one for one in parts.parameters}
    scale = np.concatenate([np.ones(len(names) - u), gains.nominal])
    values = (
        np.array([own[n].value if n in own else x for n, x in zip(names, gains.chi, strict=True)]) * scale
    )
    spread = replace(gains.spread, covariance=gains.spread.covariance * np.outer(scale, scale))
    found = uncertainty(values, spread.covariance, spread.dof)
    listed = []
    for k, (parameter, value) in enumerate(zip(gains.parameters, values, strict=True)):
        before = own.get(parameter.name) or ParameterEstimate(
            parameter.name, parameter.unit, 0.0, None, None, None, prior=float(scale[k])
        )
        relative = float(found.sigma_rel_percent[k])
        listed.append(
            replace(
                before,
                value=float(value),
                sigma=float(found.sigma[k]),
                sigma_rel_percent=relative if np.isfinite(relative) else None,
                ci95=(float(found.ci95[k, 0]), float(found.ci95[k, 1])),
                dof=float(spread.dof[k]),
                sigma_by=spread.methods[k],
            )
        )
    warnings = tuple(dict.fromkeys((*parts.warnings, *gains.notices)))
    return replace(parts, parameters=tuple(listed), spread=spread, warnings=warnings)


def with_result_gains(logs: Sequence[Log], estimate: Estimate, experiment: Experiment) -> list[Log]:
    """Logs of a result whose gains were found: its gains applied to the efforts as logged."""
    settings = experiment.gains
    if settings is None:
        return list(logs)
    found = {one.name: one.value for one in estimate.parameters if one.name.startswith(f"{GAIN}_")}
    scaled = []
    for log in logs:
        factors = nominal_factors(log.effort_names, settings)
        for k, motor in enumerate(log.effort_names):
            own = found.get(f"{GAIN}_{motor}")
            if own is not None:
                factors[k] = own
            elif settings.common and motor in settings.open_motors(log.effort_names):
                factors[k] *= found[f"{GAIN}_common"]
        scaled.append(applied(log, factors))
    return scaled
