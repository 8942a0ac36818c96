"""Controllers of the plant: motors follow a reference.

    pd               tau = kp (y_d - y) + kd (dy_d - dy),              kp = omega^2 m,  kd = 2 zeta omega m
    feedforward      the same, plus the efforts predicted by the controller's model along the reference
    computed_torque  J^T tau = N^T ID(q, dq, ddq),
                     C ddq = ddy_d + 2 zeta omega (dy_d - dy) + omega^2 (y_d - y)

y = C q are the motors, m the effective inertia of each at the start. The controller's model may differ from
the true robot. Its measurement of the state: see `controller_sensors`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.dynamics.freedoms import Freedoms
from dynid.kinematics.sensors import sensors_of
from dynid.kinematics.tension import driven_freedoms
from dynid.mechanism.drive_terms import JUMPING
from dynid.mechanism.mechanism import Mechanism
from dynid.simulation.plant.controller_sensors import Sight, driven_coordinates
from dynid.simulation.plant.drives import BodyModel, Drives, body_model
from dynid.simulation.plant.layout import DELAY, NOW, PERIOD, Control, Driving, Linkage, Memory
from dynid.simulation.plant.reference import Reference, position_map
from dynid.simulation.plant.settings import ControllerSettings

# From times (n,) to the reference of the motors and the feedforward efforts, each (n, a).
Wanted = Callable[[Float[Array, "n"]], tuple[Float[Array, "n a"], Float[Array, "n a"]]]


class Controller:
    """Efforts of the motors: wanted - kp y - kd dy, through the inverse dynamics of a model if it has one.

    Args:
        mechanism: The robot.
        gains: kp and kd, each (a,): SI for efforts, per s^2 and per s for accelerations.
        wanted: Reference of the motors at any time.
        model: Controller's model of the robot, if `wanted` are accelerations converted to efforts by it.
        sight: Encoders; None: it knows the true state at any time.

    Attributes:
        wanted, extra: At the times loaded, each (n, a).
        model, tables, memory: As `control_kernels` reads them.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        gains: tuple[Float[Array, "a"], Float[Array, "a"]],
        wanted: Wanted,
        model: BodyModel | None = None,
        sight: Sight | None = None,
    ) -> None:
        self._wanted, self.sight = wanted, sight
        self.model = None if model is None else model.tables
        self.wanted = self.extra = np.zeros((0, len(mechanism.actuators)))
        Q, names = position_map(mechanism), driven_coordinates(mechanism)
        sensors = sensors_of(mechanism, names)
        period, passed, delay = (
            (1.0, 1.0, 0.0) if sight is None else (sight.period, sight.passed, sight.delay)
        )
        self._delay = delay
        # Always flagged as redundant: the kernel then uses the nearest pose.
        seen = (*sensors.tables(-1)[:5], np.ones(1, dtype=np.int64))
        kp, kd, Q, C = (np.ascontiguousarray(x, dtype=float) for x in (*gains, Q, mechanism.actuator_map))
        self.tables = Control(
            kp,
            kd,
            Q,
            C,
            at_q=sensors.position,
            at_v=sensors.velocity,
            resolution=np.zeros(len(names)) if sight is None else sight.resolution,
            Qe=np.ascontiguousarray(Q[:, sensors.position]),
            numbers=np.array([period, 0.0, passed]),
            sensors=seen,
        )
        self.memory: Memory | None = None

    def begin(self, q: Float[Array, "1 q"], dq: Float[Array, "1 v"], step: float) -> None:
        """Start with a robot at rest before the first of its steps [s], or continue with it."""
        if self.memory is not None:
            return
        at_q, at_v, numbers = self.tables.at_q, self.tables.at_v, self.tables.numbers
        numbers[DELAY] = self._delay / step
        ring = np.repeat(q[:, at_q], int(np.ceil(numbers[DELAY])) + 2, axis=0)
        rates = np.repeat(step * dq[:, at_v], len(ring), axis=0)
        behind = q[0, at_q] - dq[0, at_v] * numbers[PERIOD]
        seen = np.stack([behind, dq[0, at_v]])
        held = np.zeros((2, len(self.tables.kp)))
        self.memory = Memory(ring, rates, seen, q.copy(), dq.copy(), held, np.array([0, -1], dtype=np.int64))

    def load(self, times: Float[Array, "n"]) -> None:
        """Compute the part that depends only on time, for the stages at `times` [s]."""
        self.wanted, self.extra = (np.ascontiguousarray(x) for x in self._wanted(times))

    def efforts(
        self, freedoms: Freedoms, stage: int, q: Float[Array, "q"], dq: Float[Array, "v"]
    ) -> Float[Array, "a"]:
        """Motor efforts, shape (a,), in [N m] or [N]: from the state, or held since the last tick.

        Args:
            freedoms: Of the robot.
            stage: Index of the loaded times.
            q, dq: All true tree coordinates, shapes (n_q,) and (n_v,).
        """
        from dynid.simulation.plant.control_kernels import feedback_once

        if self.sight is not None and self.memory is not None:
            return np.array(self.memory.held[NOW])
        context = (Linkage(freedoms.closure.tables, freedoms.plan.tables), self.model, self.tables)
        state = (np.ascontiguousarray(x, dtype=float)[None] for x in (q, dq))
        return np.asarray(feedback_once(*context, self.wanted[stage], self.extra[stage], *state))

    def tick(self, freedoms: Freedoms, stage: int, step: float) -> bool:
        """Read the encoders if a tick is due; arguments as for `efforts`, and the step [s]."""
        from dynid.simulation.plant.control_kernels import tick_once

        if self.sight is None or self.memory is None:
            return False
        done, last = self.memory.counters.tolist()
        if done % self.ticks(step) or done == last:
            return bool(done == last)
        context = (Linkage(freedoms.closure.tables, freedoms.plan.tables), self.model, self.tables)
        noise = self.noise[done // self.ticks(step)]
        tick_once(*context, self.memory, self.wanted[stage], self.extra[stage], noise)
        return True

    def remember(self, q: Float[Array, "q"], dq: Float[Array, "v"], step: float) -> None:
        """Store the state after a step [s]."""
        from dynid.simulation.plant.control_kernels import remember_once

        if self.sight is not None:
            state = (np.ascontiguousarray(x, dtype=float)[None] for x in (q, dq))
            remember_once(self.tables, self.memory, *state, step)

    @property
    def driving(self) -> Driving:
        """A controller that has begun, as input of `run_kernels`."""
        assert self.memory is not None  # noqa: S101 (set by `begin`)
        return Driving(self.model, self.tables, self.memory, self.wanted, self.extra, self.noise)

    @property
    def noise(self) -> Float[Array, "k e"]:
        """Of the encoders at all ticks."""
        return np.zeros((1, len(self.tables.at_q))) if self.sight is None else self.sight.noise

    def ticks(self, step: float) -> int:
        """Steps [s] from tick to tick; 0 for a controller that knows the state at any time."""
        return 0 if self.sight is None else max(1, round(self.sight.period / step))


def followed(
    mechanism: Mechanism,
    reference: Reference,
    settings: ControllerSettings,
    inertia: Float[Array, "a"],
    believed: Mapping[str, float],
    payloads: tuple[str, ...],
    width: Float[Array, "o"],
    sight: Sight | None = None,
) -> Controller:
    """A controller with these model parameters.

    Args:
        mechanism: The robot.
        reference: Of the motors.
        settings: Kind and gains.
        inertia: Effective inertia of each motor, shape (a,), in [kg m^2] or [kg].
        believed: Standard parameters by name of the controller's model, SI.
        payloads: Mounted in the controller's model.
        width: Speed scales of dry friction in the plant, owners of drive terms first.
        sight: Its encoders; None: it knows the true state.
    """
    inverts = settings.kind == "computed_torque"
    if inverts and sight is not None:
        _check_driven(mechanism)
    omega = settings.omega
    scale = np.ones(len(inertia)) if inverts else inertia
    gains = omega**2 * scale, 2.0 * settings.damping * omega * scale
    friction = Drives(mechanism, believed)
    friction.width = width[: len(friction.owners)]
    model = None
    if inverts:
        smooth = {name: 0.0 if name.partition("_")[0] in JUMPING else x for name, x in believed.items()}
        model = body_model(mechanism, smooth, payloads, Drives(mechanism, smooth))
    wanted = _following(mechanism, reference, settings, gains, friction)
    return Controller(mechanism, gains, wanted, model, sight)


def _following(
    mechanism: Mechanism,
    reference: Reference,
    settings: ControllerSettings,
    gains: tuple[Float[Array, "a"], Float[Array, "a"]],
    friction: Drives,
) -> Wanted:
    """Reference and feedforward of a controller; dry friction is compensated if a motor itself owns it."""
    owned = np.argwhere((mechanism.actuator_map[:, None] == friction.D[None]).all(axis=2)).tolist()

    def wanted(times: Float[Array, "n"]) -> tuple[Float[Array, "n a"], Float[Array, "n a"]]:
        goal = reference.at(times)
        asked, extra = gains[0] * goal.y + gains[1] * goal.dy, np.zeros_like(goal.y)
        rubbing = np.zeros_like(goal.y)
        for motor, owner in owned:
            size = friction.dry[owner] + friction.share[owner] * np.abs(goal.foreseen[:, motor])
            rubbing[:, motor] += size * np.tanh(goal.dy[:, motor] / friction.width[owner])
        if settings.kind == "feedforward":
            asked += goal.foreseen + goal.strain + rubbing
        elif settings.kind == "computed_torque":
            asked += goal.ddy
            extra = goal.strain + rubbing
        return asked, extra

    return wanted


def _check_driven(mechanism: Mechanism) -> None:
    freedoms, driven = driven_freedoms(mechanism)
    if driven < freedoms:
        raise InputError(
            f"computed torque needs the full state, but the encoders of robot '{mechanism.name}' measure"
            f" {driven} of {freedoms} degrees of freedom",
            file=mechanism.file,
            remedy="use `kind: feedforward`, or `feedback: truth`",
        )
