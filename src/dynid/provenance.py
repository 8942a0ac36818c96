"""Where a result comes from: inputs by hash, versions, options; and back to the options."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from dynid.experiment import ColumnMap, Experiment, FilterSettings, MaskSettings, TieChoice
from dynid.mechanism.frame import Frame
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan

IDENTIFIED, VALIDATED = "identify", "validate"
_PACKAGES = ("dynid", "numpy", "scipy", "numba")


def provenance(
    mechanism: Mechanism,
    logs: Sequence[Log],
    validate: Sequence[Log],
    experiment: Experiment,
    plan: MotionPlan,
) -> dict[str, Any]:
    """Inputs with their hashes, versions, platform, and the options as they were used."""
    return {
        "inputs": [
            {"file": log.file or log.name, "sha256": log.sha256, "use": use}
            for use, group in ((IDENTIFIED, logs), (VALIDATED, validate))
            for log in group
        ],
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        },
        "platform": platform.platform(),
        "options": _options(mechanism, experiment, plan),
        "seed": None,
    }


def _options(mechanism: Mechanism, experiment: Experiment, plan: MotionPlan) -> dict[str, Any]:
    used = {"cutoff": plan.cutoff, "decimate": plan.decimate, "derivative": plan.derivative}
    used["velocity"] = plan.velocity
    return {
        "robot": _robot_reference(mechanism, experiment),
        "model": experiment.model or mechanism.model,
        "estimator": experiment.estimator,
        "filter": {**asdict(experiment.filter), **used},
        "mask": asdict(experiment.mask),
        "efforts": None if experiment.efforts is None else list(experiment.efforts),
        "columns": {name: asdict(column) for name, column in experiment.columns.items()},
        "payloads": {name: _payload_document(payload) for name, payload in experiment.payloads.items()},
        "ties": [asdict(tie) for tie in experiment.ties],
        "essential": None if experiment.essential is None else dict(experiment.essential),
        "keep": None if experiment.keep is None else list(experiment.keep),
        "angles": experiment.angles,
    }


def _robot_reference(mechanism: Mechanism, experiment: Experiment) -> str:
    if isinstance(experiment.robot, str):
        return experiment.robot
    return mechanism.file or mechanism.name


def _payload_document(payload: Payload) -> dict[str, Any]:
    frame = {"R": payload.frame.R.tolist(), "p": payload.frame.p.tolist()}
    return {"body": payload.body, **frame, "known": dict(payload.known), "prior": dict(payload.prior)}


def _payload(name: str, document: dict[str, Any]) -> Payload:
    frame = Frame(np.array(document["R"], float), np.array(document["p"], float))
    return Payload(name, document["body"], frame, document["known"], document["prior"])


def experiment_of(options: dict[str, Any]) -> Experiment:
    """The experiment whose options a result recorded, without its logs."""
    efforts = options.get("efforts")
    return Experiment(
        robot=options.get("robot", ""),
        model=options.get("model"),
        estimator=options.get("estimator", "wls"),
        filter=FilterSettings(**options.get("filter", {})),
        mask=MaskSettings(**options.get("mask", {})),
        efforts=None if efforts is None else tuple(efforts),
        columns={name: ColumnMap(**column) for name, column in options.get("columns", {}).items()},
        payloads={name: _payload(name, one) for name, one in options.get("payloads", {}).items()},
        ties=tuple(TieChoice(**tie) for tie in options.get("ties", ())),
        angles=options.get("angles", "xyz"),
    )
