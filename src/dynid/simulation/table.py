"""`dynid simulate --table`: the output table of a multibody program, for a robot with known parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.body_table import TableLog
from dynid.report.json_file import plain
from dynid.robots.truth import SCHEMA, true_values
from dynid.simulation.files import write_both
from dynid.simulation.motion import chosen_motion
from dynid.simulation.simulation import Simulation
from dynid.simulation.wrench_table import wrench_table, write_wrench_table


@dataclass(frozen=True, eq=False)
class SimulatedTable:
    """A table and its true parameters.

    Attributes:
        log: One row per body and instant.
        digits: Significant digits of its numbers.
        values: True standard parameters by name, SI.
        choices: Description of the simulation as text.
    """

    log: TableLog
    digits: int
    values: Mapping[str, float]
    choices: Mapping[str, str]
    notices: tuple[Notice, ...] = ()


def simulate_table(mechanism: Mechanism, settings: Simulation, instants: int, digits: int) -> SimulatedTable:
    """Body motion and joint wrenches at instants in the middle of equal parts of a motion.

    Args:
        mechanism: An open tree.
        settings: Motion, true parameters, payloads and duration; sensors are ignored.
        instants: Number of instants.
        digits: Printed significant digits.
    """
    if settings.engine != "inverse":
        raise InputError(
            f"engine '{settings.engine}' is not available for tables: their bodies follow the motion exactly",
            remedy="remove --engine",
        )
    for name in settings.payloads:
        if name not in mechanism.payloads:
            raise InputError(
                f"no payload '{name}' in robot '{mechanism.name}'" + nearest(name, mechanism.payloads)
            )
    values, notices = true_values(mechanism, settings.truth)
    motion = chosen_motion(mechanism, settings.motion, settings.seed)
    duration = settings.duration or float(getattr(motion, "period", 1.0))
    t = duration * (np.arange(instants) + 0.5) / instants
    log = wrench_table(
        mechanism, values, motion, t, digits, payloads=settings.payloads, positions=True, name=mechanism.name
    )
    choices = {
        "table": f"{instants} instants of {duration:.4g} s, {len(mechanism.bodies)} bodies, {digits} digits",
        "motion": settings.motion.file or f"random ({settings.motion.kind}), seed {settings.seed}",
        "payloads": ", ".join(settings.payloads) or "none",
    }
    return SimulatedTable(log, digits, values, choices, notices)


def write_table(simulated: SimulatedTable, robot: str, path: Path) -> tuple[Path, Path]:
    """Write the table and `NAME.truth.json` next to it."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "robot": robot,
        "log": path.name,
        "engine": "inverse",
        "parameters": plain(dict(simulated.values)),
        "choices": dict(simulated.choices),
    }
    return write_both(path, lambda part: write_wrench_table(simulated.log, part, simulated.digits), document)
