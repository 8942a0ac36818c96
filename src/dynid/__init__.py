"""Identify the dynamics of robots: parameters you can trust, from a description and a log.

    from dynid import identify
    estimate = identify("serial6", "log.csv")
    print(estimate.summary())

Everything is loaded on first use, so that importing dynid costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynid.doctor.examine import check
    from dynid.excitation.excite import excite
    from dynid.experiment.experiment import Experiment, read_experiment
    from dynid.export import export_result
    from dynid.info import describe
    from dynid.mechanism.load import load_robot
    from dynid.mechanism.mechanism import Mechanism
    from dynid.motion.log import Log
    from dynid.motion.logs import log_from_arrays, log_from_columns, read_log
    from dynid.motion.settings import FilterSettings
    from dynid.payload import payload_from_torques
    from dynid.pipeline import identify, run_experiment, validate_result
    from dynid.prediction.online import Online
    from dynid.prediction.predict import predict_efforts
    from dynid.prediction.trajectory import PoseTrajectory
    from dynid.report.json_file import read_result
    from dynid.report.seal import verify
    from dynid.simulation.demo import built_in_experiment
    from dynid.simulation.prescribed import simulate_log
    from dynid.simulation.rehearsal import RehearsalPlan, rehearse
    from dynid.simulation.simulation import Simulation, simulate
    from dynid.simulation.write import write_log
    from dynid.statistics.estimate import Estimate
    from dynid.validation.compare import compare_experiment, compare_friction

    __version__: str

__all__ = [
    "Estimate",
    "Experiment",
    "FilterSettings",
    "Log",
    "Mechanism",
    "Online",
    "PoseTrajectory",
    "RehearsalPlan",
    "Simulation",
    "__version__",
    "built_in_experiment",
    "check",
    "compare_experiment",
    "compare_friction",
    "describe",
    "excite",
    "export_result",
    "identify",
    "load_robot",
    "log_from_arrays",
    "log_from_columns",
    "payload_from_torques",
    "predict_efforts",
    "read_experiment",
    "read_log",
    "read_result",
    "rehearse",
    "run_experiment",
    "simulate",
    "simulate_log",
    "validate_result",
    "verify",
    "write_log",
]

_HOME = {
    "Estimate": "dynid.statistics.estimate",
    "Experiment": "dynid.experiment.experiment",
    "FilterSettings": "dynid.motion.settings",
    "Log": "dynid.motion.log",
    "Mechanism": "dynid.mechanism.mechanism",
    "Online": "dynid.prediction.online",
    "PoseTrajectory": "dynid.prediction.trajectory",
    "RehearsalPlan": "dynid.simulation.rehearsal",
    "Simulation": "dynid.simulation.simulation",
    "built_in_experiment": "dynid.simulation.demo",
    "compare_experiment": "dynid.validation.compare",
    "check": "dynid.doctor.examine",
    "compare_friction": "dynid.validation.compare",
    "describe": "dynid.info",
    "excite": "dynid.excitation.excite",
    "export_result": "dynid.export",
    "identify": "dynid.pipeline",
    "load_robot": "dynid.mechanism.load",
    "log_from_arrays": "dynid.motion.logs",
    "log_from_columns": "dynid.motion.logs",
    "payload_from_torques": "dynid.payload",
    "predict_efforts": "dynid.prediction.predict",
    "read_experiment": "dynid.experiment.experiment",
    "read_log": "dynid.motion.logs",
    "read_result": "dynid.report.json_file",
    "rehearse": "dynid.simulation.rehearsal",
    "run_experiment": "dynid.pipeline",
    "simulate": "dynid.simulation.simulation",
    "simulate_log": "dynid.simulation.prescribed",
    "validate_result": "dynid.pipeline",
    "write_log": "dynid.simulation.write",
    "verify": "dynid.report.seal",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("dynid")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dynid' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
