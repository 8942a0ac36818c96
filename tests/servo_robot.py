"""Servo logs without efforts from MuJoCo: a leg, and an arm, under PD laws with delay and encoder bias.

The plant is not dynid's: MuJoCo integrates the bodies and its own armature, damping and frictionloss. Its
steps are short (0.2 ms), and its friction is stiff, so that both programs mean the same Coulomb friction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def _model(name: str, bodies: str) -> str:
    """An MJCF of these bodies, with short steps, stiff friction, and a place for its actuators."""
    return f"""<mujoco model="{name}">
  <compiler angle="radian"/>
  <option timestep="0.0002" integrator="RK4"/>
  <default><joint solreffriction="0.0008 1"/></default>
  <worldbody>
{bodies}  </worldbody>
  <actuator>
    {{actuators}}
  </actuator>
</mujoco>
"""


JOINTS = ("hip", "thigh", "calf")
LEG = _model(
    "leg",
    """\
    <body name="hip_link">
      <joint name="hip" type="hinge" axis="1 0 0" {hip}/>
      <inertial pos="-0.005 0.002 0" mass="0.68" diaginertia="0.0005 0.0009 0.0006"/>
      <body name="thigh_link" pos="0 0.095 0">
        <joint name="thigh" type="hinge" axis="0 1 0" {thigh}/>
        <inertial pos="-0.004 -0.022 -0.033" mass="1.15" diaginertia="0.0058 0.0058 0.001"/>
        <body name="calf_link" pos="0 0 -0.213">
          <joint name="calf" type="hinge" axis="0 1 0" {calf}/>
          <inertial pos="0.006 0 -0.14" mass="0.24" diaginertia="0.0015 0.0015 0.00006"/>
        </body>
      </body>
    </body>
""",
)
ARM_JOINTS = ("shoulder", "upper", "elbow", "wrist")
ARM = _model(
    "arm",
    """\
    <body name="base_link" euler="0.5 0.3 0">
      <body name="shoulder_link" pos="0 0 0.2">
        <joint name="shoulder" type="hinge" axis="0 0 1" {shoulder}/>
        <inertial pos="0.02 0.01 0.05" mass="2.4" diaginertia="0.011 0.012 0.009"/>
        <body name="upper_link" pos="0 0.06 0.1">
          <joint name="upper" type="hinge" axis="0 1 0" {upper}/>
          <inertial pos="0.01 0 0.14" mass="1.9" diaginertia="0.018 0.019 0.004"/>
          <body name="elbow_link" pos="0 0 0.3">
            <joint name="elbow" type="hinge" axis="0 1 0" {elbow}/>
            <inertial pos="0.09 -0.02 0.01" mass="1.1" diaginertia="0.002 0.008 0.007"/>
            <body name="wrist_link" pos="0.22 0 0">
              <joint name="wrist" type="hinge" axis="1 0 0" {wrist}/>
              <inertial pos="0.04 0.03 0.05" mass="0.5" diaginertia="0.0011 0.0013 0.0009"/>
            </body>
          </body>
        </body>
      </body>
    </body>
""",
)


@dataclass(frozen=True)
class Truth:
    """What the simulated servos are, joint by joint; those of the leg unless others are given."""

    kp: tuple[float, ...] = (20.0, 20.0, 40.0)
    kd: tuple[float, ...] = (0.5, 0.5, 1.0)
    delay: tuple[float, ...] = (0.003, 0.003, 0.003)
    bias: tuple[float, ...] = (0.02, -0.03, 0.015)
    armature: tuple[float, ...] = (0.01, 0.02, 0.035)
    friction: tuple[float, ...] = (0.2, 0.2, 0.4)
    damping: tuple[float, ...] = (0.15, 0.2, 0.15)
    limit: tuple[float, ...] = (np.inf, np.inf, np.inf)
    no_load: tuple[float, ...] = (np.inf, np.inf, np.inf)  # rad/s at which the limit has fallen to zero
    encoder: float = 1e-4  # rad, standard deviation
    joints: tuple[str, ...] = JOINTS
    centres: tuple[float, ...] = (0.0, 0.6, -1.2)
    model: str = LEG

    def parameters(self) -> dict[str, float]:
        """By the names of a result."""
        found = {}
        keys = {"Kp": "kp", "Kd": "kd", "Delay": "delay", "Bias": "bias", "Ia": "armature", "Fs": "friction"}
        for name, key in {**keys, "Fv": "damping", "Limit": "limit", "NoLoad": "no_load"}.items():
            found |= {f"{name}_{j}": x for j, x in zip(self.joints, getattr(self, key), strict=True)}
        return found


def arm_truth(limit: float = np.inf) -> Truth:
    """Servos of the arm; the first two have a limit."""
    return Truth(
        kp=(90.0, 120.0, 60.0, 15.0),
        kd=(3.0, 4.0, 2.0, 0.3),
        delay=(0.003, 0.003, 0.003, 0.003),
        bias=(-0.012, 0.02, 0.03, -0.025),
        armature=(0.08, 0.1, 0.05, 0.006),
        friction=(0.7, 0.9, 0.4, 0.08),
        damping=(0.4, 0.6, 0.3, 0.05),
        limit=(limit, limit, np.inf, np.inf),
        no_load=(np.inf,) * 4,
        encoder=5e-5,
        joints=ARM_JOINTS,
        centres=(0.4, -0.5, 0.9, 0.2),
        model=ARM,
    )


def leg(truth: Truth | None = None) -> str:
    """MJCF of the leg; without truth that of its description, with default friction."""
    return plant(truth) if truth is not None else described(Truth())


def described(truth: Truth) -> str:
    """MJCF of the description: no armature, no friction, motors."""
    drive = dict.fromkeys(truth.joints, 'armature="0" damping="0" frictionloss="0"')
    actuators = [f'<motor name="{j}" joint="{j}"/>' for j in truth.joints]
    return truth.model.format(**drive, actuators=" ".join(actuators))


def plant(truth: Truth) -> str:
    """MJCF of the simulated robot."""
    values = zip(truth.joints, truth.armature, truth.damping, truth.friction, strict=True)
    drive = {j: f'armature="{a}" damping="{d}" frictionloss="{f}"' for j, a, d, f in values}
    laws = zip(truth.joints, truth.kp, truth.kd, truth.limit, strict=True)
    actuators = [
        f'<position name="{j}" joint="{j}" kp="{kp}" kv="{kd}"'
        + (f' forcerange="{-most} {most}"/>' if np.isfinite(most) else "/>")
        for j, kp, kd, most in laws
    ]
    return truth.model.format(**drive, actuators=" ".join(actuators))


def command(t, seed: int, centres=(0.0, 0.6, -1.2)):
    """Commanded positions, shape (n, a): sums of five sines of random frequency and phase."""
    rng = np.random.default_rng(seed)
    q = np.zeros((len(t), len(centres)))
    for k, centre in enumerate(centres):
        f = np.sort(rng.uniform(0.15, 3.5, 5))
        a = 0.5 * rng.uniform(0.6, 1.4, 5) / (1.0 + f)
        phase = rng.uniform(0.0, 2.0 * np.pi, 5)
        waves = a * (np.sin(2.0 * np.pi * f * t[:, None] + phase) - np.sin(phase))
        q[:, k] = centre + waves.sum(axis=1) * np.minimum(1.0, t / 0.5)
    return q


def servo_run(truth: Truth, seed: int, seconds: float = 12.0, rate: float = 500.0):
    """Columns of a log without efforts: t, q_1.., q_ref_1.. of one run."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(plant(truth))
    data = mujoco.MjData(model)
    h, m = model.opt.timestep, len(truth.joints)
    n, every = round(seconds / h), round(1.0 / rate / h)
    t = h * np.arange(n)
    q_d = command(t, seed, truth.centres)
    # A command is held for a step: half a step ahead, so that its mean delay is the true one.
    moved = [np.maximum(t + 0.5 * h - d, 0.0) for d in truth.delay]
    delayed = np.column_stack([command(x, seed, truth.centres)[:, k] for k, x in enumerate(moved)])
    # The servo sees q + bias: kp (q_d - bias - q) - kd dq.
    data.qpos[:] = q_d[0] - truth.bias
    positions = _positions(model, data, delayed - truth.bias, truth)
    read = np.concatenate([(q_d[0] - truth.bias)[None], positions[:-1]]) + truth.bias
    noise = truth.encoder * np.random.default_rng(1000 + seed).standard_normal((len(t[::every]), m))
    q = read[::every] + noise
    columns = {"t": t[::every]}
    columns |= {f"q_{k + 1}": q[:, k] for k in range(m)}
    return columns | {f"q_ref_{k + 1}": q_d[::every, k] for k in range(m)}


def _positions(model, data, controls, truth: Truth):
    """Positions after each step, shape (n, m)."""
    import mujoco
    from mujoco import rollout

    if np.isfinite(truth.no_load).any():  # MuJoCo has no limit that falls with the speed: step by step
        stall, no_load = np.array(truth.limit), np.array(truth.no_load)
        positions = np.zeros((len(controls), model.nq))
        for k, control in enumerate(controls):
            falls = stall * np.clip(1.0 - np.abs(data.qvel) / no_load, 0.0, 1.0)
            model.actuator_forcerange[:, 0] = np.where(data.qvel < 0.0, -falls, -stall)
            model.actuator_forcerange[:, 1] = np.where(data.qvel > 0.0, falls, stall)
            data.ctrl[:] = control
            mujoco.mj_step(model, data)
            positions[k] = data.qpos
        return positions
    start = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states, _ = rollout.rollout(model, data, start[None], controls[None])
    return states[0][:, 1 : 1 + model.nq]
