"""Identify the dynamics of robots: parameters you can trust, from a description and a log.

    from dynid import identify
    estimate = identify("serial6", "log.csv")
    estimate.summary()

Everything is loaded on first use, so that importing dynid costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynid.doctor.examine import check
    from dynid.excitation.excite import excite
    from dynid.experiment.experiment import Experiment
    from dynid.mechanism.load import load_robot
    from dynid.mechanism.mechanism import Mechanism
    from dynid.payload import payload_from_torques
    from dynid.pipeline import identify
    from dynid.prediction.online import Online
    from dynid.prediction.predict import predict_efforts
    from dynid.report.json_file import read_result
    from dynid.report.seal import verify
    from dynid.simulation.rehearsal import rehearse
    from dynid.simulation.simulation import simulate
    from dynid.statistics.estimate import Estimate
    from dynid.validation.compare import compare_friction

    __version__: str

__all__ = [
    "Estimate",
    "Experiment",
    "Mechanism",
    "Online",
    "__version__",
    "check",
    "compare_friction",
    "excite",
    "identify",
    "load_robot",
    "payload_from_torques",
    "predict_efforts",
    "read_result",
    "rehearse",
    "simulate",
    "verify",
]

_HOME = {
    "Estimate": "dynid.statistics.estimate",
    "Experiment": "dynid.experiment.experiment",
    "Mechanism": "dynid.mechanism.mechanism",
    "Online": "dynid.prediction.online",
    "check": "dynid.doctor.examine",
    "compare_friction": "dynid.validation.compare",
    "excite": "dynid.excitation.excite",
    "identify": "dynid.pipeline",
    "load_robot": "dynid.mechanism.load",
    "payload_from_torques": "dynid.payload",
    "predict_efforts": "dynid.prediction.predict",
    "read_result": "dynid.report.json_file",
    "rehearse": "dynid.simulation.rehearsal",
    "simulate": "dynid.simulation.simulation",
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
