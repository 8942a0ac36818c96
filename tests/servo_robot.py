"""Servo logs without efforts from MuJoCo: a leg of three joints under a PD law with delay and encoder bias.

The plant is not dynid's: MuJoCo integrates the bodies and its own armature, damping and frictionloss. Its
steps are short (0.2 ms), and its friction is stiff, so that both programs mean the same Coulomb friction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

JOINTS = ("hip", "thigh", "calf")
LEG = """<mujoco model="leg">
  <compiler angle="radian"/>
  <option timestep="0.0002" integrator="RK4"/>
  <default><joint solreffriction="0.0008 1"/></default>
  <worldbody>
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
  </worldbody>
  <actuator>
    {actuators}
  </actuator>
</mujoco>
"""


@dataclass(frozen=True)
class Truth:
    """What the simulated servos are, joint by joint."""

    kp: tuple[float, ...] = (20.0, 20.0, 40.0)
    kd: tuple[float, ...] = (0.5, 0.5, 1.0)
    delay: tuple[float, ...] = (0.003, 0.003, 0.003)
    bias: tuple[float, ...] = (0.02, -0.03, 0.015)
    armature: tuple[float, ...] = (0.01, 0.02, 0.035)
    friction: tuple[float, ...] = (0.2, 0.2, 0.4)
    damping: tuple[float, ...] = (0.15, 0.2, 0.15)
    limit: tuple[float, ...] = (np.inf, np.inf, np.inf)
    encoder: float = 1e-4  # rad, standard deviation

    def parameters(self) -> dict[str, float]:
        """By the names of a result."""
        found = {}
        keys = {"Kp": "kp", "Kd": "kd", "Delay": "delay", "Bias": "bias", "Ia": "armature", "Fs": "friction"}
        for name, key in {**keys, "Fv": "damping"}.items():
            found |= {f"{name}_{j}": x for j, x in zip(JOINTS, getattr(self, key), strict=True)}
        return found


def leg(truth: Truth | None = None) -> str:
    """MJCF of the leg; without truth that of its description, with default friction."""
    drive = dict.fromkeys(JOINTS, 'armature="0" damping="0" frictionloss="0"')
    actuators = [f'<motor name="{j}" joint="{j}"/>' for j in JOINTS]
    if truth is not None:
        values = zip(JOINTS, truth.armature, truth.damping, truth.friction, strict=True)
        drive = {j: f'armature="{a}" damping="{d}" frictionloss="{f}"' for j, a, d, f in values}
        laws = zip(JOINTS, truth.kp, truth.kd, truth.limit, strict=True)
        actuators = [
            f'<position name="{j}" joint="{j}" kp="{kp}" kv="{kd}"'
            + (f' forcerange="{-most} {most}"/>' if np.isfinite(most) else "/>")
            for j, kp, kd, most in laws
        ]
    return LEG.format(**drive, actuators=" ".join(actuators))


def command(t, seed: int):
    """Commanded positions, shape (n, 3): sums of five sines of random frequency and phase."""
    rng = np.random.default_rng(seed)
    q = np.zeros((len(t), 3))
    for k, centre in enumerate((0.0, 0.6, -1.2)):
        f = np.sort(rng.uniform(0.15, 3.5, 5))
        a = 0.5 * rng.uniform(0.6, 1.4, 5) / (1.0 + f)
        phase = rng.uniform(0.0, 2.0 * np.pi, 5)
        waves = a * (np.sin(2.0 * np.pi * f * t[:, None] + phase) - np.sin(phase))
        q[:, k] = centre + waves.sum(axis=1) * np.minimum(1.0, t / 0.5)
    return q


def servo_run(truth: Truth, seed: int, seconds: float = 12.0, rate: float = 500.0):
    """Columns of a log without efforts: t, q_1.., q_ref_1.. of one run."""
    import mujoco
    from mujoco import rollout

    model = mujoco.MjModel.from_xml_string(leg(truth))
    data = mujoco.MjData(model)
    h = model.opt.timestep
    n, every = round(seconds / h), round(1.0 / rate / h)
    t = h * np.arange(n)
    q_d = command(t, seed)
    # A command is held for a step: half a step ahead, so that its mean delay is the true one.
    late = [command(np.maximum(t + 0.5 * h - d, 0.0), seed)[:, k] for k, d in enumerate(truth.delay)]
    delayed = np.column_stack(late)
    # The servo sees q + bias: kp (q_d - bias - q) - kd dq.
    data.qpos[:] = q_d[0] - truth.bias
    start = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states, _ = rollout.rollout(model, data, start[None], (delayed - truth.bias)[None])
    positions = states[0][:, 1 : 1 + model.nq]
    read = np.concatenate([(q_d[0] - truth.bias)[None], positions[:-1]]) + truth.bias
    noise = truth.encoder * np.random.default_rng(1000 + seed).standard_normal((len(t[::every]), 3))
    q = read[::every] + noise
    columns = {"t": t[::every]}
    columns |= {f"q_{k + 1}": q[:, k] for k in range(3)}
    return columns | {f"q_ref_{k + 1}": q_d[::every, k] for k in range(3)}
