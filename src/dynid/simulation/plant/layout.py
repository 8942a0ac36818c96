"""Tables of a run that kernels and their callers share.

Fields that are None (declared columns, load friction, the controller's model) are absent features: branches
on None are resolved when Numba compiles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.dynamics.forward import Masses

PERIOD, DELAY, PASSED = range(3)  # entries of `Control.numbers`
POSITION, RATE = range(2)  # rows of `Memory.seen`
NOW, BEFORE = range(2)  # rows of `Memory.held`
STEPS, LAST_TICK = range(2)  # entries of `Memory.counters`


class Linkage(NamedTuple):
    """Closures of a robot (`closure.tables_of`), and the plan (`Elimination`) that solves them."""

    closure: tuple[Any, ...]
    plan: tuple[Array, ...]


class Friction(NamedTuple):
    """Friction of all owners, see `drive_kernels`.

    Attributes:
        D: Their velocities are D dq.
        width: Speed scale of smoothed dry friction, per s.
        breakaway: Dry friction at rest, without load friction.
        jumps: Whether an owner has dry friction, and so sticks.
        terms: Values of the owners' drive terms, by their numbers; rotors and load friction are zero.
        shares: Load friction of the same owners.
        speeds: Their Stribeck speeds.
        laws, bristles: Of the owners of additional friction.
    """

    D: Float[Array, "o v"]
    width: Float[Array, "o"]
    breakaway: Float[Array, "o"]
    jumps: Bool[Array, "o"]
    terms: Float[Array, "m t"]
    shares: Float[Array, "m"]
    speeds: Float[Array, "m"]
    laws: Array
    bristles: Array


class Model(NamedTuple):
    """A robot with parameters, for inverse dynamics; terms: declared columns, see `term_kernels`."""

    masses: Masses
    terms: tuple[Array, ...] | None
    friction: Friction


class Robot(NamedTuple):
    """The simulated robot.

    Attributes:
        terms: Declared columns, see `term_kernels`.
        loads: Rows E of the loads E tau.
        C: Velocities of the motors are C dq.
    """

    linkage: Linkage
    masses: Masses
    terms: tuple[Array, ...] | None
    friction: Friction
    loads: Float[Array, "m a"] | None
    C: Float[Array, "a v"]


class Control(NamedTuple):
    """A controller.

    Attributes:
        kp, kd: Gains of the motors.
        Q, C: Motors over positions and velocities.
        at_q, at_v: Position and velocity index of each encoder.
        resolution: Of each encoder; 0: exact.
        Qe: Part of Q that belongs to the encoders.
        numbers: PERIOD between ticks [s], DELAY in steps, share PASSED of a new velocity by the low-pass.
        sensors: The encoders, see `Sensors.tables`.
    """

    kp: Float[Array, "a"]
    kd: Float[Array, "a"]
    Q: Float[Array, "a q"]
    C: Float[Array, "a v"]
    at_q: Int[Array, "e"]
    at_v: Int[Array, "e"]
    resolution: Float[Array, "e"]
    Qe: Float[Array, "a e"]
    numbers: Float[Array, "3"]
    sensors: tuple[Array, ...]


class Memory(NamedTuple):
    """State of a controller.

    Attributes:
        ring, rates: Encoder positions and velocities (per step) after each of the last r steps.
        seen: POSITION as read at the last tick, and low-passed RATE.
        q, dq: Estimated pose and velocity.
        held: Efforts since the last tick (NOW), and since the one BEFORE.
        counters: STEPS so far, and the step of the LAST_TICK.
    """

    ring: Float[Array, "r e"]
    rates: Float[Array, "r e"]
    seen: Float[Array, "2 e"]
    q: Float[Array, "1 q"]
    dq: Float[Array, "1 v"]
    held: Float[Array, "2 a"]
    counters: Int[Array, "2"]


class Driving(NamedTuple):
    """A controller with what it follows.

    Attributes:
        model: Of a controller that uses inverse dynamics.
        wanted, extra: Of the controller at every half step from step 0 on.
        noise: Of the encoders at every tick of the run.
    """

    model: Model | None
    control: Control
    memory: Memory
    wanted: Float[Array, "n a"]
    extra: Float[Array, "n a"]
    noise: Float[Array, "k e"]


class State(NamedTuple):
    """State of the robot; changed by a run.

    Attributes:
        z: Bristle deflections.
        slip: Direction in which each owner of friction slips, -1 or 1; 0: it sticks.
        work: Done so far, in [J].
    """

    q: Float[Array, "1 q"]
    dq: Float[Array, "1 v"]
    z: Float[Array, "e"]
    slip: Int[Array, "o"]
    work: Float[Array, "1"]


class Steps(NamedTuple):
    """Steps of a run.

    Attributes:
        start, stop: First step, and the one at which the run ends.
        per_sample: Steps from sample to sample.
        per_tick: Steps from tick to tick; 0: a controller that knows the state at any time.
        row: Row of the samples at step 0.
        n_bodies: Maximum of the robot and of the controller's model.
        h: Step [s].
        most: Size of N above which the independent coordinates have become singular.
    """

    start: int
    stop: int
    per_sample: int
    per_tick: int
    row: int
    n_bodies: int
    h: float
    most: float


class Samples(NamedTuple):
    """Rows that a run fills."""

    q: Float[Array, "n q"]
    dq: Float[Array, "n v"]
    ddq: Float[Array, "n v"]
    tau: Float[Array, "n a"]
    work: Float[Array, "n"]
