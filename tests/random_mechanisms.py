"""Random trees with every joint kind, and random states of them."""

from __future__ import annotations

import numpy as np

from dynid.mechanism.frame import Frame, rpy_matrix
from dynid.mechanism.inertia import from_centre_of_mass
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Actuator, Body, Mechanism

MOVING = (
    JointKind.REVOLUTE,
    JointKind.PRISMATIC,
    JointKind.UNIVERSAL,
    JointKind.SPHERICAL,
    JointKind.FREE,
)


def random_frame(rng: np.random.Generator) -> Frame:
    return Frame(rpy_matrix(tuple(rng.uniform(-np.pi, np.pi, 3))), rng.uniform(-0.5, 0.5, 3))


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def random_tree(
    rng: np.random.Generator,
    n_bodies: int,
    kinds: tuple[JointKind, ...] = (*MOVING, JointKind.FIXED),
    offsets: bool = True,
    chain: bool = False,
    drive: tuple[str, ...] = (),
) -> Mechanism:
    """A tree of `n_bodies` with random joints; every coordinate has its own motor."""
    joints = []
    for i in range(n_bodies):
        kind = kinds[rng.integers(len(kinds))]
        parent = "base" if i == 0 else f"body{i - 1 if chain else rng.integers(-1, i)}"
        parent = "base" if parent == "body-1" else parent
        n_axes = {JointKind.REVOLUTE: 1, JointKind.PRISMATIC: 1, JointKind.UNIVERSAL: 2}.get(kind, 0)
        choices = [np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0]), unit(rng.normal(size=3))]
        axes = tuple(choices[rng.integers(2)] for _ in range(n_axes))
        if kind is JointKind.UNIVERSAL:
            axes = (axes[0], unit(np.cross(axes[0], rng.normal(size=3))))
        body = random_frame(rng) if offsets and rng.random() < 0.5 else Frame(np.eye(3), np.zeros(3))
        joints.append(Joint(f"joint{i}", kind, parent, f"body{i}", random_frame(rng), axes, body))
    coordinates = [name for joint in joints for name in joint.coordinates]
    return Mechanism(
        name="random",
        gravity=rng.uniform(-10, 10, 3),
        joints=tuple(joints),
        bodies={joint.child: Body(joint.child) for joint in joints},
        actuators=tuple(Actuator(name, {name: 1.0}) for name in coordinates),
        measured=tuple(joint.name for joint in joints if joint.positions),
        drive=dict.fromkeys(coordinates, drive) if drive else {},
    )


def random_states(
    rng: np.random.Generator, mechanism: Mechanism, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (unit quaternions), velocities and accelerations of the tree, samples first."""
    columns = []
    for joint in mechanism.joints:
        block = rng.uniform(-2, 2, (n, len(joint.positions)))
        if joint.has_quaternion:
            block[:, -4:] /= np.linalg.norm(block[:, -4:], axis=1, keepdims=True)
        columns.append(block)
    q = np.concatenate(columns, axis=1)
    n_v = len(mechanism.coordinates)
    return q, rng.normal(size=(n, n_v)), 3.0 * rng.normal(size=(n, n_v))


def random_inertias(rng: np.random.Generator, n_bodies: int) -> np.ndarray:
    """Physically consistent parameters, ten a body."""
    rows = []
    for _ in range(n_bodies):
        mass = rng.uniform(0.5, 5.0)
        points = rng.normal(size=(3, 8)) * 0.1
        inertia = mass / 8 * (np.sum(points**2) * np.eye(3) - points @ points.T)
        rows.append(from_centre_of_mass(mass, rng.uniform(-0.2, 0.2, 3), inertia))
    return np.concatenate(rows)
