"""Free motions that are recorded already: what they tell, in the rows of the search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from dynid.cases.free_motion.defaults import free_motion_defaults
from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.excitation.free_set import FreeSetSettings
from dynid.experiment.experiment import Experiment, LogEntry
from dynid.mechanism.mechanism import Mechanism
from dynid.problem import as_log, build_system, prepare


def recorded_information(
    mechanism: Mechanism, logs: Sequence[str], names: Sequence[str], reference: str, search: FreeSetSettings
) -> Float[Array, "p p"]:
    """W^T W of recorded runs, each counting as much as a motion of the set that is searched.

    Args:
        mechanism: The robot.
        logs: Files of free motion; results hold no rows and are refused.
        names: Standard parameters in the order wanted; reference: the mass among them.
        search: Whose null space and samples a run are taken.
    """
    for log in logs:
        if Path(log).is_dir() or Path(log).suffix.lower() == ".json":
            raise InputError(
                "is a result: what free motions told stands in their logs",
                file=log,
                remedy="give the logs it was identified from: --after swing.csv",
            )
    asked = Experiment(
        robot=mechanism,
        logs=tuple(LogEntry(log) for log in logs),
        model="internal",
        internal={"nullspace": search.nullspace},
    )
    experiment = free_motion_defaults(asked)
    read = [as_log(entry, mechanism, experiment) for entry in experiment.logs]
    system = build_system(prepare(mechanism, read, experiment))
    factor = system.factor()
    columns = {parameter.name: factor.W[:, i] for i, parameter in enumerate(system.parameters)}
    columns[reference] = -factor.Y  # the mass is what the rows measure against
    W = np.column_stack([columns.get(name, np.zeros(len(factor.Y))) for name in names])
    runs = sum(len(log.segments) for log in read)
    samples = factor.n_rows / len(dict.fromkeys(group.name for group in system.groups))
    return np.asarray(W.T @ W * (runs * search.samples / samples))
