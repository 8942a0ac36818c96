"""Information of free motions that are already recorded, in the rows of the search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from dynid.cases.free_motion.defaults import free_motion_defaults
from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.excitation.settings import FreeSetSettings
from dynid.experiment.experiment import experiment_from
from dynid.mechanism.mechanism import Mechanism
from dynid.problem import as_log, build_system, prepare


def recorded_information(
    mechanism: Mechanism, logs: Sequence[str], names: Sequence[str], reference: str, search: FreeSetSettings
) -> Float[Array, "p p"]:
    """W^T W of recorded runs, each weighted like one motion of the designed set.

    Args:
        mechanism: The robot.
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
    read = [as_log(entry, mechanism, experiment) for entry in experiment.logs]
    system = build_system(prepare(mechanism, read, experiment))
    factor = system.factor()
    columns = {parameter.name: factor.W[:, i] for i, parameter in enumerate(system.parameters)}
    columns[reference] = -factor.Y  # the rows are relative to the mass
    W = np.column_stack([columns.get(name, np.zeros(len(factor.Y))) for name in names])
    runs = sum(len(log.segments) for log in read)
    samples = factor.n_rows / len(dict.fromkeys(group.name for group in system.groups))
    return np.asarray(W.T @ W * (runs * search.samples / samples))
