"""Replay judge: an exported MJCF simulated in MuJoCo under logged commands, beside the description.

    with a PD law   closed loop from the first sample of a segment, kp (q_ref(t - delay) - q - bias) - kd dq,
                    limited as the logs have shown: by a constant, or by a line that falls with the speed
    without         logged efforts, in windows that start at the measured state

The error is rms(q_simulated - q_logged) of every joint, in [rad] or [m]. The description is simulated with
its own inertials and friction, with the same kp and kd, and without delay and bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.exporters.contract import Described
from dynid.exporters.link_tree import link_tree, split_drives
from dynid.exporters.mjcf_new import generated
from dynid.exporters.readers import compiled
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table, prior_values
from dynid.motion.log import Log
from dynid.motion.servo import Law, servo_of
from dynid.statistics.estimate import Estimate
from dynid.unknowns.saturation import Limits

_STEP = 0.0005  # s, at most
_WINDOW = 0.25  # s, of replays by efforts
_MOST_WINDOWS = 200


@dataclass(frozen=True)
class Replay:
    """Errors of one replayed log.

    Attributes:
        export, description: rms error by joint, in [rad] or [m]; no description: it is incomplete.
        window: Length of the windows in [s]; 0: whole segments in closed loop.
    """

    log: str
    export: Mapping[str, float]
    description: Mapping[str, float] | None
    window: float

    @property
    def means(self) -> tuple[float, float | None]:
        """Root mean square over all joints, of the export and of the description."""
        mine = _mean(self.export)
        return mine, None if self.description is None else _mean(self.description)

    @property
    def text(self) -> str:
        """In one line."""
        mine, other = self.means
        how = "closed loop" if self.window == 0.0 else f"windows of {self.window:g} s"
        text = f"replay of {self.log} in MuJoCo ({how}): rms joint error {mine:.3g}"
        if not other:
            return text
        return f"{text}, of the description {other:.3g} ({100.0 * (mine / other - 1.0):+.0f} %)"

    def document(self) -> dict[str, Any]:
        """As in export.json."""
        mine, other = self.means
        return {
            "log": self.log,
            "export_rms": mine,
            "description_rms": other,
            "export_joints": dict(self.export),
            "description_joints": None if self.description is None else dict(self.description),
            "window_seconds": self.window,
        }


def _mean(errors: Mapping[str, float]) -> float:
    return float(np.sqrt(np.mean(np.square(list(errors.values())))))


def replayed(
    export: Any, description: Any, robot: Mechanism, log: Log, law: Law | None, limits: Limits
) -> Replay:
    """Simulate a log by two models.

    Args:
        export, description: Specifications of MuJoCo (MjSpec); no description: None.
        robot: Its motors are on one measured joint each.
        log: Read as for the identification.
        law: PD law of the servos; None: the efforts of the log act.
        limits: Largest efforts of the motors.
    """
    if law is None:
        errors = [None if spec is None else _by_efforts(spec, robot, log) for spec in (export, description)]
        return Replay(log.name, errors[0] or {}, errors[1], _WINDOW)
    none = np.zeros_like(law.delay)
    plain = law.changed(delay=none, bias=none)
    free = Limits.none(len(none))
    mine = _by_law(export, robot, log, law, limits)
    other = None if description is None else _by_law(description, robot, log, plain, free)
    return Replay(log.name, mine, other, 0.0)


def described_spec(estimate: Estimate, robot: Mechanism) -> Any:
    """The robot as described, before anything was identified; None where it has no value for some body.

    Args:
        estimate: Its header is that of the file.
        robot: Its priors are those of the description.
    """
    import mujoco

    priors = prior_values(robot)
    names = [parameter.name for parameter in parameter_table(robot) if parameter.kind == "inertial"]
    if any(name not in priors for name in names):
        return None
    plain = Described(replace(estimate, provenance={}), robot)
    links = link_tree(robot)
    groups = [link.coordinates for link in links if len(link.coordinates) == 1]
    split = split_drives(robot, plain.parameters, plain.chi, ("Ia", "Fv", "Fs"), groups)
    return mujoco.MjSpec.from_string(generated(plain, links, split)[0])


def _compiled(spec: Any, robot: Mechanism, log: Log, law: Law | None, limits: Limits) -> Any:
    """The model with the motors of the robot alone, and a step that divides that of the log."""
    import mujoco

    spec = spec.copy()
    for existing in list(spec.actuators):
        spec.delete(existing)
    for k, actuator in enumerate(robot.actuators):
        if len(actuator.on) != 1:
            raise InputError(f"motor '{actuator.name}' is on several joints", remedy="leave out --replay")
        ((joint, ratio),) = actuator.on.items()
        made = spec.add_actuator(name=f"replay {k}", target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        made.gear = [ratio, 0, 0, 0, 0, 0]
        if law is not None:
            made.gaintype, made.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
            made.gainprm[0], made.biasprm[:3] = law.kp[k], [0.0, -law.kp[k], -law.kd[k]]
        if np.isfinite(limits.effort[k]):
            made.forcelimited, made.forcerange = True, [-limits.effort[k], limits.effort[k]]
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    spec.option.timestep = log.dt / int(np.ceil(log.dt / _STEP - 1e-9))
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return spec.compile()


def _places(model: Any, log: Log) -> tuple[list[int], list[int]]:
    """Position and velocity addresses of the measured joints."""
    import mujoco

    ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in log.position_names]
    if min(ids) < 0:
        lost = log.position_names[int(np.argmin(ids))]
        raise InputError(f"the exported model has no joint '{lost}'", remedy="leave out --replay")
    if model.nv != len(ids):
        raise InputError(
            "only robots whose joints are all measured are replayed", remedy="leave out --replay"
        )
    return [int(model.jnt_qposadr[i]) for i in ids], [int(model.jnt_dofadr[i]) for i in ids]


def _by_law(spec: Any, robot: Mechanism, log: Log, law: Law, limits: Limits) -> dict[str, float]:
    """Errors of the closed loop, joint by joint."""
    model = _compiled(spec, robot, log, law, limits)
    q_at, v_at = _places(model, log)
    servo = servo_of(log)
    joints, squares, count = list(servo.joints), np.zeros(len(q_at)), 0
    per = round(log.dt / model.opt.timestep)
    # Commands at the middle of the steps in which they act.
    middle = (np.arange(per) + 0.5) / per
    late = [law.changed(delay=law.delay - x * log.dt).delayed(log) for x in middle]
    command = servo.ratio * (np.stack(late, axis=1) - law.bias)
    speeds = log.dq
    for start, stop in log.segments:
        q0 = servo.q[start].copy()
        q0[joints] -= law.bias
        v0 = speeds[start] if speeds is not None else (servo.q[start + 1] - servo.q[start]) / log.dt
        controls = command[start : stop - 1].reshape(-1, len(joints))
        simulated = _rollout(model, q_at, v_at, q0, v0, controls, limits)[per - 1 :: per]
        simulated[:, joints] += law.bias
        miss = simulated - servo.q[start + 1 : stop]
        squares += np.sum(np.minimum(np.abs(miss), 1e3) ** 2, axis=0)
        count += len(miss)
    rms = np.sqrt(squares / max(count, 1))
    return dict(zip(log.position_names, rms.tolist(), strict=True))


def _by_efforts(spec: Any, robot: Mechanism, log: Log) -> dict[str, float]:
    """Errors of windows in which the logged efforts act."""
    model = _compiled(spec, robot, log, None, Limits.none(len(robot.actuators)))
    q_at, v_at = _places(model, log)
    per, length = round(log.dt / model.opt.timestep), max(2, round(_WINDOW / log.dt))
    begins = [k for a, b in log.segments for k in range(a + 1, b - length, length)]
    begins = begins[:: max(1, len(begins) // _MOST_WINDOWS)]
    squares, count = np.zeros(len(q_at)), 0
    for k in begins:
        v0 = log.dq[k] if log.dq is not None else (log.q[k + 1] - log.q[k - 1]) / (2.0 * log.dt)
        tau = np.asarray(log.tau[k : k + length - 1], float)
        if not np.isfinite(tau).all():
            continue
        simulated = _rollout(model, q_at, v_at, log.q[k], v0, np.repeat(tau, per, axis=0))[per - 1 :: per]
        squares += np.sum((simulated - log.q[k + 1 : k + length]) ** 2, axis=0)
        count += len(simulated)
    rms = np.sqrt(squares / max(count, 1))
    return dict(zip(log.position_names, rms.tolist(), strict=True))


def _rollout(
    model: Any,
    q_at: list[int],
    v_at: list[int],
    q0: Float[Array, "m"],
    v0: Float[Array, "m"],
    controls: Float[Array, "n a"],
    limits: Limits | None = None,
) -> Float[Array, "n m"]:
    """Positions of the measured joints after each step."""
    import mujoco
    from mujoco import rollout

    data = mujoco.MjData(model)
    data.qpos[q_at], data.qvel[v_at] = q0, v0
    if limits is not None and np.isfinite(limits.no_load).any():
        return _stepped(model, data, q_at, controls, limits)
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, start, kind)
    states, _ = rollout.rollout(model, data, start[None], np.ascontiguousarray(controls)[None])
    return np.asarray(states[0][:, 1 : 1 + model.nq][:, q_at])


def _stepped(
    model: Any, data: Any, q_at: list[int], controls: Float[Array, "n a"], limits: Limits
) -> Float[Array, "n m"]:
    """As `_rollout`, with limits that depend on the speed; they are set before each step."""
    import mujoco

    motors, positions = np.isfinite(limits.effort), np.zeros((len(controls), len(q_at)))
    dofs, gear = model.jnt_dofadr[model.actuator_trnid[:, 0]], model.actuator_gear[:, 0]
    directions = np.array([[-1.0], [1.0]]) * np.ones(len(gear))
    for k, control in enumerate(controls):
        speed = np.broadcast_to(gear * data.qvel[dofs], directions.shape)
        ranges = directions * limits.at(directions, speed)
        model.actuator_forcerange[motors] = ranges.T[motors]
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        positions[k] = data.qpos[q_at]
    return positions


def friction_speeds(file: Path, assets: Path | None = None) -> dict[str, float]:
    """Speed above which MuJoCo's frictionloss reaches its full value, by joint, in [rad/s] or [m/s].

    The constraint asks for the acceleration -b v with b = 2 / (d_max t_c), against the mobility A of the
    joint with its regularisation: full friction from v = F A / (d b) on.
    """
    import mujoco

    model = compiled(file, assets)
    speeds = {}
    for j in range(model.njnt):
        dof = int(model.jnt_dofadr[j])
        loss = float(model.dof_frictionloss[dof])
        if loss <= 0.0 or int(model.jnt_type[j]) not in (2, 3):
            continue
        time, ratio = (float(x) for x in model.dof_solref[dof])
        d = float(np.clip(model.dof_solimp[dof][0], 1e-4, 0.9999))
        d_max = float(np.clip(model.dof_solimp[dof][1], 1e-4, 0.9999))
        time = max(time, 2.0 * float(model.opt.timestep)) if time > 0.0 else time
        b = 2.0 / (d_max * time) if time > 0.0 else -ratio / d_max
        if b > 0.0:
            name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, j) or f"joint {j}"
            speeds[name] = loss * float(model.dof_invweight0[dof]) / (d * b)
    return speeds
