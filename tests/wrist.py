"""Logs of a wrist force/torque sensor, simulated by Pinocchio."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dynid.cases.force_sensor.case import with_force_sensor
from dynid.excitation.series import FourierMotion
from dynid.mechanism.force_sensor import COMPONENTS, ForceSensor
from dynid.mechanism.frame import Frame, rpy_matrix
from dynid.mechanism.inertia import SYMBOLS, from_centre_of_mass, unpack
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays
from tests.oracle import pin, pinocchio_model, pinocchio_velocity

FRAME = Frame(rpy_matrix((0.0, 0.0, np.pi / 4)), np.array([0.0, 0.0, 0.107]))
SENSOR = ForceSensor(body="link_7", frame=FRAME)
# A gripper: 1.3 kg, centre of mass 63 mm before the sensor, inertia about it of a box of that size.
TOOL = from_centre_of_mass(
    1.3,
    np.array([0.012, -0.008, 0.063]),
    np.array([[2.9e-3, 1e-4, -2e-4], [1e-4, 2.1e-3, 1.5e-4], [-2e-4, 1.5e-4, 1.7e-3]]),
)
BIAS = np.array([3.2, -5.1, 8.4, 0.21, -0.13, 0.08])
NOISE = np.array([0.5, 0.5, 0.5, 0.02, 0.02, 0.02])


def tool_values(chi: np.ndarray = TOOL, name: str = "tool") -> dict[str, float]:
    return dict(zip((f"{symbol}_{name}" for symbol in SYMBOLS), chi.tolist(), strict=True))


def wrist_motion(n_joints: int = 7, seed: int = 1, size: float = 1.0, seconds: float = 20.0) -> FourierMotion:
    """A motion mostly of the wrist; peak speeds of the last joints about 2 rad/s."""
    rng = np.random.default_rng(seed)
    speeds = size * np.array([0.1, 0.1, 0.1, 0.15, 0.5, 0.5, 0.5])[-n_joints:]
    harmonics = 12
    a, b = rng.normal(size=(2, harmonics, n_joints)) * speeds / np.sqrt(0.5 * harmonics) * 2.0
    centre = np.array([0.0, -0.3, 0.0, -1.8, 0.0, 1.6, 0.3])[-n_joints:]
    return FourierMotion(1.0 / seconds, a, b, centre)


_SIMULATED: dict[tuple[str | bytes, ...], Truth] = {}


@dataclass(frozen=True)
class Setup:
    """What the simulated sensor really is."""

    robot: str = "panda"
    sensor: ForceSensor = SENSOR
    tool: np.ndarray = field(default_factory=lambda: TOOL)
    bias: np.ndarray = field(default_factory=lambda: BIAS)
    noise: np.ndarray = field(default_factory=lambda: NOISE)
    turned: np.ndarray = field(default_factory=lambda: np.eye(3))
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))


@dataclass(frozen=True)
class Truth:
    """Motion and wrench of the sensor as mounted, sample by sample."""

    R: np.ndarray
    omega: np.ndarray
    alpha: np.ndarray
    specific: np.ndarray
    wrench: np.ndarray


def pinocchio_wrench(setup: Setup, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> Truth:
    """What the tool exerts on the sensor, in axes of the sensor as mounted, by Pinocchio."""
    arm = load_robot(setup.robot)
    model, where = pinocchio_model(arm)
    model.gravity.linear = np.zeros(3)
    data = model.createData()
    joint, to_body = where[setup.sensor.body]
    frame = setup.sensor.frame
    place = to_body * pin.SE3(frame.R @ setup.turned, frame.p)
    fid = model.addFrame(pin.Frame("sensor", joint, 0, place, pin.FrameType.OP_FRAME))
    data = model.createData()
    mass, moment, inertia = unpack(setup.tool)
    com = moment / mass
    about = inertia + mass * pin.skew(com) @ pin.skew(com)
    body = pin.Inertia(mass, com, about)
    found = []
    for i in range(len(q)):
        state = pinocchio_velocity(arm, q[i], dq[i], ddq[i])
        pin.forwardKinematics(model, data, *state)
        pin.updateFramePlacement(model, data, fid)
        R = data.oMf[fid].rotation
        v = pin.getFrameVelocity(model, data, fid)
        a = pin.getFrameAcceleration(model, data, fid)  # spatial
        felt = a - pin.Motion(R.T @ setup.gravity, np.zeros(3))
        force = body * felt + v.cross(body * v)
        specific = felt.linear + np.cross(v.angular, v.linear)
        found.append([R.ravel(), v.angular, a.angular, specific, -force.vector])
    R, omega, alpha, specific, wrench = (np.array([row[k] for row in found]) for k in range(5))
    return Truth(R.reshape(-1, 3, 3), omega, alpha, specific, wrench)


def wrist_log(
    setup: Setup | None = None,
    *,
    rate: float = 200.0,
    seconds: float = 20.0,
    seed: int = 0,
    motion: FourierMotion | None = None,
    encoder: float = 2e-6,
    name: str = "wrist",
    segments: list[tuple[int, int]] | None = None,
    drift: np.ndarray | None = None,
    asked: ForceSensor | None = None,
) -> tuple[Mechanism, Log]:
    """The robot as the sensor sees it, and a noisy log of it.

    Args:
        encoder: Deviation of the joint angles' noise, in [rad].
        drift: What is added to the bias of each segment, shape (s, 6).
        asked: The sensor as the user describes it; default as it is.
    """
    setup = setup or Setup()
    t, truth, q = wrist_samples(setup, rate, seconds, motion)
    rng = np.random.default_rng(seed)
    s = 1.0 if setup.sensor.sign == "load" else -1.0
    measured = s * truth.wrench + setup.bias + setup.noise * rng.standard_normal((len(t), 6))
    for k, (start, stop) in enumerate(segments or ()):
        if drift is not None:
            measured[start:stop] += drift[k]
    robot = with_force_sensor(load_robot(setup.robot), asked or setup.sensor)
    q = q + encoder * rng.standard_normal(q.shape)
    return robot, log_from_arrays(robot, t, q, measured, name=name, segments=segments)


def wrist_samples(
    setup: Setup, rate: float = 200.0, seconds: float = 20.0, motion: FourierMotion | None = None
) -> tuple[np.ndarray, Truth, np.ndarray]:
    """Times, the sensor's true motion and wrench, and joint angles."""
    motion = motion or wrist_motion(seconds=seconds)
    t = np.arange(round(rate * seconds)) / rate
    states = motion.q(t), motion.dq(t), motion.ddq(t)
    frame = setup.sensor.frame
    arrays = (frame.R, frame.p, setup.tool, setup.turned, setup.gravity, *states)
    key = (setup.robot, setup.sensor.body, *(x.tobytes() for x in arrays))
    if key not in _SIMULATED:  # Pinocchio takes a millisecond per sample
        _SIMULATED[key] = pinocchio_wrench(setup, *states)
    return t, _SIMULATED[key], states[0]


__all__ = ["BIAS", "COMPONENTS", "NOISE", "SENSOR", "TOOL", "Setup", "replace", "wrist_log", "wrist_motion"]
