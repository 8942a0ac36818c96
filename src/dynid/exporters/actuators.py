"""Actuator models for simulators: what each joint's drive does, with the names of other programs' fields.

    effort = stiffness (q_ref(t - delay) - q - bias) - damping dq,    |effort| <= effort_limit
    joint:  armature ddq + viscous_friction dq + friction sign(dq)

NAME.actuators.yaml has the values with their sigma, and again as fields of configurations of Isaac Lab and
mjlab; NAME.actuators.xml has position actuators for an MJCF.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.entry import plain_entry
from dynid.common.errors import InputError
from dynid.common.settings import read
from dynid.exporters.contract import Described, EffortsOf, Exported, header_lines, named_file
from dynid.exporters.link_tree import DriveSplit, link_tree, rest_sentences, split_drives
from dynid.exporters.parameter_files import READ_HERE, read_values, yaml_text
from dynid.exporters.states import along, balanced, model_rows, tree_states
from dynid.exporters.xml_text import attribute, comment, number
from dynid.kinematics.coordinates import States
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.servo import LIMIT, NO_LOAD, Law, PdSettings
from dynid.statistics.estimate import Estimate, ParameterEstimate

PHYSICS_DT = 0.001  # s: steps in which delays are counted
_TERMS = ("Ia", "Fv", "Fs")
_READ = ("armature", "viscous_friction", "friction")  # what they are in the file


@dataclass(frozen=True)
class ActuatorModel:
    """The drive of one joint, SI units of the joint.

    Attributes:
        motor, joint: Names.
        ratio: Velocity of the motor per velocity of the joint.
        stiffness, damping: Of the PD law; None: efforts were logged, there is no law.
        delay: Its value and 95 % interval, in [s].
        bias: What the encoder shows too much, in [rad] or [m].
        effort_limit: Largest effort; None: not reached in the logs.
        no_load: Speed at which the largest effort has fallen to zero; None: it does not fall.
    """

    motor: str
    joint: str
    ratio: float
    stiffness: float | None
    damping: float | None
    delay: tuple[float, float, float]
    bias: float
    armature: float
    viscous_friction: float
    friction: float
    effort_limit: float | None
    no_load: float | None = None


def law_of(estimate: Estimate, mechanism: Mechanism) -> Law | None:
    """The PD law of a result; None: its logs had efforts."""
    options = estimate.provenance.get("options", {}).get("pd")
    if options is None:
        return None
    settings = read(PdSettings, plain_entry(options))
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    return Law.of(settings, motors, {parameter.name: parameter.value for parameter in estimate.parameters})


def actuator_models(described: Described) -> list[ActuatorModel]:
    """Drives of all motors that are on one joint."""
    estimate, mechanism = described.estimate, described.mechanism
    assert estimate is not None  # noqa: S101  (only results are exported)
    law = law_of(estimate, mechanism)
    joints = _split(described).joints
    by_name = {parameter.name: parameter for parameter in estimate.parameters}
    models = []
    for k, actuator in enumerate(mechanism.actuators):
        if len(actuator.on) != 1:
            continue
        ((joint, ratio),) = actuator.on.items()
        terms = joints.get(joint, {})
        most, fastest = (by_name.get(f"{symbol}_{actuator.name}") for symbol in (LIMIT, NO_LOAD))
        models.append(
            ActuatorModel(
                actuator.name,
                joint,
                float(ratio),
                None if law is None else float(law.kp[k]) * ratio**2,
                None if law is None else float(law.kd[k]) * ratio**2,
                _interval(by_name.get(f"Delay_{actuator.name}"), 0.0 if law is None else float(law.delay[k])),
                0.0 if law is None else float(law.bias[k]),
                terms.get("Ia", 0.0),
                terms.get("Fv", 0.0),
                terms.get("Fs", 0.0),
                None if most is None else most.value * abs(ratio),
                None if fastest is None else fastest.value / abs(ratio),
            )
        )
    return models


def _split(described: Described) -> DriveSplit:
    """Drive terms that a model of an actuator holds, and the rest."""
    mechanism = described.mechanism
    driven = {next(iter(actuator.on)) for actuator in mechanism.actuators if len(actuator.on) == 1}
    groups = [link.coordinates for link in link_tree(mechanism) if driven.issuperset(link.coordinates)]
    groups = [group for group in groups if len(group) == 1]
    return split_drives(mechanism, described.parameters, described.chi, _TERMS, groups)


def _interval(estimate: ParameterEstimate | None, given: float) -> tuple[float, float, float]:
    if estimate is None or estimate.ci95 is None:
        return given, given, given
    return estimate.value, max(0.0, estimate.ci95[0]), max(0.0, estimate.ci95[1])


def export_actuators(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """NAME.actuators.yaml, and NAME.actuators.xml if there is a PD law."""
    described = Described(estimate, mechanism)
    models = actuator_models(described)
    if not models:
        raise InputError("the robot has no motor on a joint of its own", remedy="choose another format")
    file = named_file(folder, mechanism, ".actuators.yaml")
    document = {
        "physics_dt": PHYSICS_DT,
        "joints": {model.joint: _joint(model, estimate) for model in models},
        "isaac_lab": _isaac_lab(models),
        "mjlab": _mjlab(models),
    }
    lines = [f"# {' '.join(line.split())}" for line in header_lines(described)]
    lines += [f"# {line}" for line in _NOTES]
    lines += _yaml(document)
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    files, missing = [file], []
    if all(model.stiffness is not None for model in models):
        fragment = named_file(folder, mechanism, ".actuators.xml")
        inner = [f"    {line}" for line in position_actuators(models)]
        text = ["<mujoco>", "  <actuator>", *inner, "  </actuator>", "</mujoco>", ""]
        fragment.write_text("\n".join([comment(header_lines(described)), *text]), encoding="utf-8")
        files.append(fragment)
    else:
        missing.append("stiffness and damping: the logs of the result had efforts, not a PD law")
    if any(model.no_load is not None for model in models):
        missing.append("fall of the largest effort with the speed: only DCMotorCfg of Isaac Lab has it")
    if any(abs(model.bias) > 0.0 for model in models):
        missing.append("encoder bias: no configuration has such a field; subtract it from measured positions")
    split = _split(described)
    missing += rest_sentences(described.parameters, split, "in no actuator")
    return Exported(
        tuple(files),
        lambda: _efforts(file, described, split),
        not_representable=tuple(missing),
        payloads=tuple(mechanism.payloads),
    )


def _efforts(file: Path, described: Described, split: DriveSplit) -> EffortsOf:
    """Efforts with the drives as the file has them; bodies, and terms of no actuator, are the estimate's."""
    joints = _read_joints(file)
    mechanism, table = described.mechanism, described.parameters
    names = mechanism.coordinates
    here = {key: np.array([joints.get(name, {}).get(key, 0.0) for name in names]) for key in _READ}
    drives = np.where([p.kind == "inertial" for p in table], 0.0, split.held)

    def rows(states: States) -> Float[Array, "n d"]:
        f = here["armature"] * states.ddq + here["viscous_friction"] * states.dq
        f = f + here["friction"] * np.sign(states.dq)
        return model_rows(mechanism, table, described.chi - drives, states) + along(states, f)

    def efforts(q: Any, dq: Any, ddq: Any) -> Any:
        states = tree_states(mechanism, q, dq, ddq)
        return balanced(mechanism, states, rows(states))

    efforts.program, efforts.rows = READ_HERE, rows  # type: ignore[attr-defined]
    return efforts


def _read_joints(file: Path) -> dict[str, dict[str, float]]:
    """Joint -> armature and friction: the same in every configuration, or the file is refused."""
    content = read_values(file)
    joints = {
        name: {key: float(entry[key]["value"]) for key in _READ} for name, entry in content["joints"].items()
    }
    fields = content["isaac_lab"]["DelayedPDActuatorCfg"]
    configured = content["mjlab"]["BuiltinPositionActuatorCfg"]
    for name, values in joints.items():
        isaac = {
            key: float(value)
            for key in _READ
            for expression, value in fields[key].items()
            if re.fullmatch(expression, name)
        }
        mjlab = [
            {"armature": float(entry["armature"]), "friction": float(entry["frictionloss"])}
            for entry in configured
            if any(re.fullmatch(expression, name) for expression in entry["target_names_expr"])
        ]
        found = [isaac, *mjlab]
        if len(found) != 2 or any(values[key] != x for entry in found for key, x in entry.items()):
            raise InputError(f"configurations of joint '{name}' differ in what was written", file=file)
    return joints


_NOTES = (
    "joints: values in SI units of the joint, sigma beside them. Delays of the configurations are counted in",
    "steps of physics_dt and span the 95 % interval: change them with your own step. damping includes",
    "viscous friction if kd was unknown (then viscous_friction is 0).",
)


def position_actuators(models: list[ActuatorModel]) -> list[str]:
    """Lines of <position> elements; delays are not part of MJCF."""
    lines = []
    for model in models:
        most = model.effort_limit
        force = "" if most is None else f' forcerange="{number(-most)} {number(most)}"'
        gains = f'kp="{number(model.stiffness or 0.0)}" kv="{number(model.damping or 0.0)}"'
        names = f'name="{attribute(model.motor)}" joint="{attribute(model.joint)}"'
        lines.append(f"<position {names} {gains}{force}/>")
    return lines


def servo_lines(described: Described) -> dict[str, str]:
    """Motor -> its <position> element; empty if the result has no PD law."""
    models = [model for model in actuator_models(described) if model.stiffness is not None]
    return dict(zip((model.motor for model in models), position_actuators(models), strict=True))


def _joint(model: ActuatorModel, estimate: Estimate) -> dict[str, Any]:
    """Values with sigma where the result has one."""
    sigma = {p.name: p.sigma for p in estimate.parameters}
    r = abs(model.ratio)
    fields: dict[str, tuple[float | None, list[str], float]] = {
        "stiffness": (model.stiffness, [f"Kp_{model.motor}"], r**2),
        "damping": (model.damping, [f"Kd_{model.motor}"], r**2),
        "armature": (model.armature, [f"Ia_{model.motor}", f"Ia_{model.joint}"], 1.0),
        "viscous_friction": (model.viscous_friction, [f"Fv_{model.motor}", f"Fv_{model.joint}"], 1.0),
        "friction": (model.friction, [f"Fs_{model.motor}", f"Fs_{model.joint}"], 1.0),
        "delay": (model.delay[0], [f"Delay_{model.motor}"], 1.0),
        "bias": (model.bias, [f"Bias_{model.motor}"], 1.0),
        "effort_limit": (model.effort_limit, [f"{LIMIT}_{model.motor}"], r),
        "no_load_velocity": (model.no_load, [f"{NO_LOAD}_{model.motor}"], 1.0 / r),
    }
    entries: dict[str, Any] = {}
    for key, (value, names, scale) in fields.items():
        if value is None:
            continue
        deviation = next((sigma[name] for name in names if sigma.get(name) is not None), None)
        entries[key] = {"value": float(value)} | (
            {} if deviation is None else {"sigma": float(deviation) * scale}
        )
    return entries


def _isaac_lab(models: list[ActuatorModel]) -> dict[str, Any]:
    """Fields of ImplicitActuatorCfg and DelayedPDActuatorCfg of Isaac Lab, and of DCMotorCfg for each joint
    whose largest effort falls with the speed."""
    fields: dict[str, Any] = {"joint_names_expr": [_literal(model.joint) for model in models]}
    fields |= _gains(models)
    fields["friction"] = {_literal(model.joint): model.friction for model in models}
    fields["dynamic_friction"] = {_literal(model.joint): model.friction for model in models}
    fields["viscous_friction"] = {_literal(model.joint): model.viscous_friction for model in models}
    low, high = _steps(models)
    delayed = {**fields, "min_delay": low, "max_delay": high}
    falling = [_dc_motor(model) for model in models if model.no_load is not None]
    found = {"ImplicitActuatorCfg": fields, "DelayedPDActuatorCfg": delayed}
    return {**found, "DCMotorCfg": falling} if falling else found


def _dc_motor(model: ActuatorModel) -> dict[str, Any]:
    """The effort falls from `saturation_effort` at rest to zero at `velocity_limit`."""
    gains = {key: next(iter(values.values())) for key, values in _gains([model]).items()}
    fields = {"joint_names_expr": [_literal(model.joint)], **gains, "friction": model.friction}
    fields |= {"dynamic_friction": model.friction, "viscous_friction": model.viscous_friction}
    return {**fields, "saturation_effort": model.effort_limit, "velocity_limit": model.no_load}


def _mjlab(models: list[ActuatorModel]) -> dict[str, Any]:
    """Fields of BuiltinPositionActuatorCfg of mjlab, one for each joint; joint damping is in the MJCF."""
    low, high = _steps(models)
    configs = []
    for model in models:
        fields: dict[str, Any] = {"target_names_expr": [_literal(model.joint)]}
        fields |= {key: next(iter(values.values())) for key, values in _gains([model]).items()}
        configs.append(
            {**fields, "frictionloss": model.friction, "delay_min_lag": low, "delay_max_lag": high}
        )
    return {"BuiltinPositionActuatorCfg": configs}


def _gains(models: list[ActuatorModel]) -> dict[str, dict[str, float]]:
    keys = ("stiffness", "damping", "armature", "effort_limit")
    gains = {}
    for key in keys:
        values = {
            _literal(model.joint): getattr(model, key) for model in models if getattr(model, key) is not None
        }
        if values:
            gains[key] = values
    return gains


def _steps(models: list[ActuatorModel]) -> tuple[int, int]:
    """Fewest and most steps of delay of any joint."""
    low = min(model.delay[1] for model in models)
    high = max(model.delay[2] for model in models)
    return int(np.floor(low / PHYSICS_DT + 1e-9)), int(np.ceil(high / PHYSICS_DT - 1e-9))


def _literal(name: str) -> str:
    """A regular expression that matches this name alone."""
    return re.escape(name).replace("\\-", "-")


def _yaml(document: Mapping[str, Any], indent: str = "") -> list[str]:
    """Plain trees of names, numbers and lists."""
    lines = []
    for key, value in document.items():
        name = json.dumps(str(key))
        if isinstance(value, Mapping) and not all(isinstance(x, float) for x in value.values()):
            lines += [f"{indent}{name}:", *_yaml(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name}: {yaml_text(value)}")
    return lines
