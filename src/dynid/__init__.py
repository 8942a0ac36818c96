"""Identify the dynamics of robots: parameters you can trust, from a description and a log.

    from dynid import identify
    estimate = identify("ur5", "log.csv")
    print(estimate.summary())

Everything is loaded on first use, so that importing dynid costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynid.base.structural import structural_base
    from dynid.base.system import base_system
    from dynid.cases.force_sensor.case import with_force_sensor
    from dynid.common.errors import DynidError, InputError, NoResultError
    from dynid.doctor.examine import check
    from dynid.dynamics.free_motion import LockedCables, free_motions
    from dynid.dynamics.statics import equilibria, lengths_for, modes, rest
    from dynid.estimator.estimator import estimator_named
    from dynid.excitation.excite import excite
    from dynid.excitation.random_motion import random_motion
    from dynid.experiment.experiment import Experiment, read_experiment
    from dynid.exporters import export
    from dynid.info import describe
    from dynid.kinematics.assembly import assembly_of
    from dynid.kinematics.locked_motion import cable_jacobian, cable_shapes
    from dynid.mechanism.cable import locked
    from dynid.mechanism.force_sensor import ForceSensor
    from dynid.mechanism.frame import Frame
    from dynid.mechanism.load import load_robot
    from dynid.mechanism.mechanism import Mechanism, Payload
    from dynid.motion.log import Log
    from dynid.motion.logs import log_from_arrays, log_from_columns, read_log
    from dynid.motion.settings import FilterSettings
    from dynid.payload import payload_from_torques
    from dynid.pipeline import identify, run_experiment, validate_result
    from dynid.prediction.online import Online
    from dynid.prediction.predict import predict_efforts
    from dynid.prediction.trajectory import PoseTrajectory
    from dynid.problem import build_system, prepare
    from dynid.report.json_file import read_result
    from dynid.report.output import write_results
    from dynid.report.seal import verify
    from dynid.robots.demo_file import demo_file, read_demo
    from dynid.simulation.demo import built_in_experiment
    from dynid.simulation.files import write_log
    from dynid.simulation.motion import MotionChoice
    from dynid.simulation.plant.engines import plant_log, run_plant
    from dynid.simulation.plant.settings import PlantSettings
    from dynid.simulation.prescribed import simulate_log, simulate_sensor_log
    from dynid.simulation.rehearsal import RehearsalPlan, rehearse
    from dynid.simulation.sensors import Sensing
    from dynid.simulation.simulation import Simulation, simulate
    from dynid.simulation.wrench_table import UniformAcceleration, wrench_table, write_wrench_table
    from dynid.statistics.covariance import covariance_of
    from dynid.statistics.estimate import Estimate
    from dynid.statistics.uncertainty import UncertaintySettings, interval95
    from dynid.validation.compare import compare_experiment, compare_friction
    from dynid.validation.results import agreement, compare_results

    __version__: str

__all__ = [
    "DynidError",
    "Estimate",
    "Experiment",
    "FilterSettings",
    "ForceSensor",
    "Frame",
    "InputError",
    "LockedCables",
    "Log",
    "Mechanism",
    "MotionChoice",
    "NoResultError",
    "Online",
    "Payload",
    "PlantSettings",
    "PoseTrajectory",
    "RehearsalPlan",
    "Sensing",
    "Simulation",
    "UncertaintySettings",
    "UniformAcceleration",
    "__version__",
    "agreement",
    "assembly_of",
    "base_system",
    "build_system",
    "built_in_experiment",
    "cable_jacobian",
    "cable_shapes",
    "check",
    "compare_experiment",
    "compare_friction",
    "compare_results",
    "covariance_of",
    "demo_file",
    "describe",
    "equilibria",
    "estimator_named",
    "excite",
    "export",
    "free_motions",
    "identify",
    "interval95",
    "lengths_for",
    "load_robot",
    "locked",
    "log_from_arrays",
    "log_from_columns",
    "modes",
    "payload_from_torques",
    "plant_log",
    "predict_efforts",
    "prepare",
    "random_motion",
    "read_demo",
    "read_experiment",
    "read_log",
    "read_result",
    "rehearse",
    "rest",
    "run_experiment",
    "run_plant",
    "simulate",
    "simulate_log",
    "simulate_sensor_log",
    "structural_base",
    "validate_result",
    "verify",
    "with_force_sensor",
    "wrench_table",
    "write_log",
    "write_results",
    "write_wrench_table",
]

_HOME = {
    "DynidError": "dynid.common.errors",
    "Estimate": "dynid.statistics.estimate",
    "Experiment": "dynid.experiment.experiment",
    "FilterSettings": "dynid.motion.settings",
    "ForceSensor": "dynid.mechanism.force_sensor",
    "Frame": "dynid.mechanism.frame",
    "InputError": "dynid.common.errors",
    "LockedCables": "dynid.dynamics.free_motion",
    "Log": "dynid.motion.log",
    "Mechanism": "dynid.mechanism.mechanism",
    "MotionChoice": "dynid.simulation.motion",
    "NoResultError": "dynid.common.errors",
    "Online": "dynid.prediction.online",
    "Payload": "dynid.mechanism.mechanism",
    "PlantSettings": "dynid.simulation.plant.settings",
    "PoseTrajectory": "dynid.prediction.trajectory",
    "RehearsalPlan": "dynid.simulation.rehearsal",
    "Sensing": "dynid.simulation.sensors",
    "Simulation": "dynid.simulation.simulation",
    "UncertaintySettings": "dynid.statistics.uncertainty",
    "UniformAcceleration": "dynid.simulation.wrench_table",
    "agreement": "dynid.validation.results",
    "assembly_of": "dynid.kinematics.assembly",
    "base_system": "dynid.base.system",
    "build_system": "dynid.problem",
    "built_in_experiment": "dynid.simulation.demo",
    "cable_jacobian": "dynid.kinematics.locked_motion",
    "cable_shapes": "dynid.kinematics.locked_motion",
    "check": "dynid.doctor.examine",
    "compare_experiment": "dynid.validation.compare",
    "compare_friction": "dynid.validation.compare",
    "compare_results": "dynid.validation.results",
    "covariance_of": "dynid.statistics.covariance",
    "demo_file": "dynid.robots.demo_file",
    "describe": "dynid.info",
    "equilibria": "dynid.dynamics.statics",
    "estimator_named": "dynid.estimator.estimator",
    "excite": "dynid.excitation.excite",
    "export": "dynid.exporters",
    "free_motions": "dynid.dynamics.free_motion",
    "identify": "dynid.pipeline",
    "interval95": "dynid.statistics.uncertainty",
    "lengths_for": "dynid.dynamics.statics",
    "load_robot": "dynid.mechanism.load",
    "locked": "dynid.mechanism.cable",
    "log_from_arrays": "dynid.motion.logs",
    "log_from_columns": "dynid.motion.logs",
    "modes": "dynid.dynamics.statics",
    "payload_from_torques": "dynid.payload",
    "plant_log": "dynid.simulation.plant.engines",
    "predict_efforts": "dynid.prediction.predict",
    "prepare": "dynid.problem",
    "random_motion": "dynid.excitation.random_motion",
    "read_demo": "dynid.robots.demo_file",
    "read_experiment": "dynid.experiment.experiment",
    "read_log": "dynid.motion.logs",
    "read_result": "dynid.report.json_file",
    "rehearse": "dynid.simulation.rehearsal",
    "rest": "dynid.dynamics.statics",
    "run_experiment": "dynid.pipeline",
    "run_plant": "dynid.simulation.plant.engines",
    "simulate": "dynid.simulation.simulation",
    "simulate_log": "dynid.simulation.prescribed",
    "simulate_sensor_log": "dynid.simulation.prescribed",
    "structural_base": "dynid.base.structural",
    "validate_result": "dynid.pipeline",
    "verify": "dynid.report.seal",
    "with_force_sensor": "dynid.cases.force_sensor.case",
    "wrench_table": "dynid.simulation.wrench_table",
    "write_log": "dynid.simulation.files",
    "write_results": "dynid.report.output",
    "write_wrench_table": "dynid.simulation.wrench_table",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("dynid.common.versions").version_of()
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dynid' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
