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
    from dynid.base.structural import structural_base as structural_base
    from dynid.base.system import base_system as base_system
    from dynid.common.errors import DynidError as DynidError
    from dynid.common.errors import InputError as InputError
    from dynid.common.errors import NoResultError as NoResultError
    from dynid.doctor.examine import check as check
    from dynid.dynamics.free_motion import LockedCables as LockedCables
    from dynid.dynamics.free_motion import free_motions as free_motions
    from dynid.dynamics.statics import equilibria as equilibria
    from dynid.dynamics.statics import lengths_for as lengths_for
    from dynid.dynamics.statics import modes as modes
    from dynid.dynamics.statics import rest as rest
    from dynid.estimator.estimator import estimator_named as estimator_named
    from dynid.excitation.excite import Excitation as Excitation
    from dynid.excitation.excite import excite as excite
    from dynid.excitation.random_motion import random_motion as random_motion
    from dynid.experiment.experiment import Experiment as Experiment
    from dynid.experiment.experiment import read_experiment as read_experiment
    from dynid.exporters import export as export
    from dynid.info import describe as describe
    from dynid.kinematics.assembly import assembly_of as assembly_of
    from dynid.kinematics.locked_motion import cable_jacobian as cable_jacobian
    from dynid.kinematics.locked_motion import cable_shapes as cable_shapes
    from dynid.mechanism.cable import locked as locked
    from dynid.mechanism.load import load_robot as load_robot
    from dynid.mechanism.mechanism import Mechanism as Mechanism
    from dynid.motion.log import Log as Log
    from dynid.motion.logs import log_from_arrays as log_from_arrays
    from dynid.motion.logs import log_from_columns as log_from_columns
    from dynid.motion.logs import read_log as read_log
    from dynid.motion.settings import FilterSettings as FilterSettings
    from dynid.payload import payload_from_torques as payload_from_torques
    from dynid.pipeline import identify as identify
    from dynid.pipeline import run_experiment as run_experiment
    from dynid.pipeline import validate_result as validate_result
    from dynid.prediction.online import Online as Online
    from dynid.prediction.predict import predict_efforts as predict_efforts
    from dynid.prediction.trajectory import PoseTrajectory as PoseTrajectory
    from dynid.problem import build_system as build_system
    from dynid.problem import prepare as prepare
    from dynid.report.json_file import read_result as read_result
    from dynid.report.output import write_results as write_results
    from dynid.report.seal import verify as verify
    from dynid.robots.demo_file import demo_file as demo_file
    from dynid.robots.demo_file import read_demo as read_demo
    from dynid.simulation.demo import built_in_experiment as built_in_experiment
    from dynid.simulation.files import write_log as write_log
    from dynid.simulation.motion import MotionChoice as MotionChoice
    from dynid.simulation.plant.engines import plant_log as plant_log
    from dynid.simulation.plant.engines import run_plant as run_plant
    from dynid.simulation.plant.settings import PlantSettings as PlantSettings
    from dynid.simulation.prescribed import simulate_log as simulate_log
    from dynid.simulation.rehearsal import RehearsalPlan as RehearsalPlan
    from dynid.simulation.rehearsal import rehearse as rehearse
    from dynid.simulation.sensors import Sensing as Sensing
    from dynid.simulation.simulation import Simulation as Simulation
    from dynid.simulation.simulation import simulate as simulate
    from dynid.simulation.wrench_table import UniformAcceleration as UniformAcceleration
    from dynid.simulation.wrench_table import wrench_table as wrench_table
    from dynid.simulation.wrench_table import write_wrench_table as write_wrench_table
    from dynid.statistics.covariance import covariance_of as covariance_of
    from dynid.statistics.estimate import Estimate as Estimate
    from dynid.statistics.uncertainty import UncertaintySettings as UncertaintySettings
    from dynid.statistics.uncertainty import interval95 as interval95
    from dynid.validation.compare import compare_experiment as compare_experiment
    from dynid.validation.compare import compare_friction as compare_friction
    from dynid.validation.results import agreement as agreement
    from dynid.validation.results import compare_results as compare_results

    __version__: str

_HOME = {
    "DynidError": "dynid.common.errors",
    "Estimate": "dynid.statistics.estimate",
    "Excitation": "dynid.excitation.excite",
    "Experiment": "dynid.experiment.experiment",
    "FilterSettings": "dynid.motion.settings",
    "InputError": "dynid.common.errors",
    "LockedCables": "dynid.dynamics.free_motion",
    "Log": "dynid.motion.log",
    "Mechanism": "dynid.mechanism.mechanism",
    "MotionChoice": "dynid.simulation.motion",
    "NoResultError": "dynid.common.errors",
    "Online": "dynid.prediction.online",
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
    "structural_base": "dynid.base.structural",
    "validate_result": "dynid.pipeline",
    "verify": "dynid.report.seal",
    "wrench_table": "dynid.simulation.wrench_table",
    "write_log": "dynid.simulation.files",
    "write_results": "dynid.report.output",
    "write_wrench_table": "dynid.simulation.wrench_table",
}

__all__ = sorted(["__version__", *_HOME])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("dynid.common.versions").version_of()
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dynid' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
