"""Servo logs without efforts: commanded and measured positions, and the PD law between them.

    effort = kp (q_ref(t - delay) - q_read) - kd dq + feed-forward          q = q_read - bias

q_read is what the encoder shows, which the servo and the log both use; the bodies are at q. A motor that
turns r times as fast as its joint has the error r (q_ref - q_read), and kp in effort per unit of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.settings import Settings
from dynid.mechanism.drive_terms import DRIVE_TERMS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table, prior_values, with_known
from dynid.motion.differentiate import differentiate
from dynid.motion.log import Log, Servo

UNKNOWN: Final = "unknown"
# Quantities of the law, in the order of results: key -> how the names of its parameters begin.
QUANTITIES = {"kp": "Kp", "kd": "Kd", "delay": "Delay", "bias": "Bias"}
LIMIT: Final = "Limit"  # the largest effort, where the logs reach it
NO_LOAD: Final = "NoLoad"  # the speed at which a limit that falls with the speed is zero
LAW_NAMES = (*QUANTITIES.values(), LIMIT, NO_LOAD)


class PdSettings(Settings, frozen=True):
    """The PD law of servos whose efforts are not logged.

    Attributes:
        kp, kd: Gains, in effort per rad or m and per rad/s or m/s: a number, `unknown`, or a list of these in
            the order of the motors. An unknown kd is found together with the viscous friction.
        delay: From the command to the effort, in [s].
        bias: What the encoder of a motor's joint shows too much, in [rad] or [m].
        bodies: `known`: inertial parameters of all bodies are those of the description, as exact values.
        feedforward: The effort columns of the logs are commands that the servo adds to its law.
    """

    _title: ClassVar[str] = "pd"

    kp: Any = UNKNOWN
    kd: Any = UNKNOWN
    delay: Any = 0.0
    bias: Any = 0.0
    bodies: Literal["open", "known"] = "open"
    feedforward: bool = False

    def check(self) -> None:
        """Values that are neither numbers nor `unknown`."""
        for key in QUANTITIES:
            given = getattr(self, key)
            for value in given if isinstance(given, list | tuple) else [given]:
                _check_value(key, value)

    def values(self, key: str, motors: Sequence[str]) -> Float[Array, "a"]:
        """Value of each motor, NaN where it is unknown."""
        given = getattr(self, key)
        several = list(given) if isinstance(given, list | tuple) else [given] * len(motors)
        if len(several) != len(motors):
            raise InputError(
                f"pd: {key} has {len(several)} values for {len(motors)} motors",
                place=f"pd.{key}",
                remedy=f"give one value, or one for each of {', '.join(motors)}",
            )
        return np.array([np.nan if value == UNKNOWN else float(value) for value in several])

    def unknown(self, key: str, motors: Sequence[str]) -> tuple[str, ...]:
        """Motors whose value is to be found."""
        return tuple(m for m, x in zip(motors, self.values(key, motors), strict=True) if np.isnan(x))

    @property
    def open(self) -> bool:
        """Whether anything is to be found."""
        every = (getattr(self, key) for key in QUANTITIES)
        return any(
            UNKNOWN in value if isinstance(value, list | tuple) else value == UNKNOWN for value in every
        )


def _check_value(key: str, value: object) -> None:
    if value == UNKNOWN:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    if not number:
        raise InputError(
            f"'{value}' is neither a number nor `unknown`", place=key, remedy="e.g. kp: 20, or kp: unknown"
        )
    if (key == "kp" and not float(value) > 0.0) or (key in ("kd", "delay") and float(value) < 0.0):  # type: ignore[arg-type]
        raise InputError(f"{key} {value} is not valid", place=key, remedy="give a positive number")


@dataclass(frozen=True, eq=False)
class Law:
    """A PD law with numbers.

    Attributes:
        kp, kd, delay, bias: Of every motor, shape (a,).
    """

    kp: Float[Array, "a"]
    kd: Float[Array, "a"]
    delay: Float[Array, "a"]
    bias: Float[Array, "a"]

    @classmethod
    def of(
        cls, settings: PdSettings, motors: Sequence[str], estimated: Mapping[str, float] | None = None
    ) -> Law:
        """The law of an experiment; unknowns are those `estimated` by name (`Kp_elbow`), or start values."""
        start = {"kp": 1.0, "kd": 0.0, "delay": 0.0, "bias": 0.0}
        values = {}
        for key, name in QUANTITIES.items():
            given = settings.values(key, motors)
            fallback = [(estimated or {}).get(f"{name}_{motor}", start[key]) for motor in motors]
            values[key] = np.where(np.isnan(given), fallback, given)
        return cls(**values)

    def changed(self, **values: Float[Array, "a"]) -> Law:
        """The law with other numbers."""
        return replace(self, **values)

    def error(self, log: Log) -> Float[Array, "n a"]:
        """q_ref(t - delay) - q_read of every motor, shape (n, a), in [rad] or [m] of the motor."""
        servo = servo_of(log)
        return np.asarray(servo.ratio * (self.delayed(log) - servo.q[:, list(servo.joints)]))

    def delayed(self, log: Log) -> Float[Array, "n a"]:
        """Commanded positions at t - delay, interpolated within each segment, shape (n, a)."""
        assert log.q_ref is not None  # noqa: S101 (checked when it was read)
        command = log.q_ref[:, list(servo_of(log).joints)]
        shifted = command.copy()
        for start, stop in log.segments:
            for k, delay in enumerate(self.delay):
                shifted[start:stop, k] = _shifted(command[start:stop, k], float(delay / log.dt))
        return np.asarray(shifted)

    def efforts(self, log: Log) -> Float[Array, "n a"]:
        """What the law asks for, shape (n, a), in [N m] or [N]."""
        tau = self.kp * self.error(log) - self.kd * speeds(log) + servo_of(log).feedforward
        return np.asarray(tau)

    def applied(self, log: Log) -> Log:
        """The log with the positions of the bodies, q = q_read - bias, and the efforts of the law."""
        servo = servo_of(log)
        q, tau = servo.q.copy(), self.efforts(log)
        q[:, list(servo.joints)] -= self.bias
        return replace(log, q=q, tau=tau, effort_present=np.ones(tau.shape[1], bool))


def _shifted(x: Float[Array, "n"], steps: float) -> Float[Array, "n"]:
    """X at `steps` samples earlier by cubics through four samples; beyond the ends the first and last.

    Straight lines would lose up to ddx dt^2 / 8, which looks like an inertia kp dt^2 / 8.
    """
    whole = int(np.floor(steps))
    f = steps - whole
    taps = {
        -1: -f * (f - 1.0) * (f - 2.0) / 6.0,
        0: (f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0,
        1: -f * (f + 1.0) * (f - 2.0) / 2.0,
        2: f * (f - 1.0) * (f + 1.0) / 6.0,
    }
    place = np.arange(len(x)) - whole
    return np.asarray(sum(w * x[np.clip(place - lag, 0, len(x) - 1)] for lag, w in taps.items()))


def speeds(log: Log) -> Float[Array, "n a"]:
    """Speeds of the motors as the servo knows them, shape (n, a): measured, else derived."""
    servo = servo_of(log)
    joints = list(servo.joints)
    if log.dq is not None:
        return np.asarray(servo.ratio * log.dq[:, joints])
    q = servo.q[:, joints]
    rates = np.zeros_like(q)
    for start, stop in log.segments:
        if stop - start > 1:
            rates[start:stop] = differentiate(q[start:stop], log.dt)
    return np.asarray(servo.ratio * rates)


def servo_log(log: Log, mechanism: Mechanism, settings: PdSettings) -> Log:
    """A log with the efforts of its PD law, unknown values at their start."""
    if log.q_ref is None:
        raise InputError(
            f"log '{log.name}' has no commanded positions, which the PD law needs",
            file=log.file,
            remedy="map q_ref_1.. under `columns:`, one for every measured joint",
        )
    if log.servo is None:
        given = np.nan_to_num(np.asarray(log.tau, float))
        forward = given if settings.feedforward else np.zeros_like(given)
        log = replace(log, servo=Servo(np.asarray(log.q, float), forward, *_places(mechanism)))
    return Law.of(settings, log.effort_names).applied(log)


def servo_of(log: Log) -> Servo:
    """What the servos of a log knew."""
    if log.servo is None:
        raise InputError(f"log '{log.name}' was not read with a PD law", remedy="give `pd:`")
    return log.servo


def _places(mechanism: Mechanism) -> tuple[tuple[int, ...], Float[Array, "a"]]:
    """Measured joint and ratio of every motor."""
    joints, ratio = [], []
    names = mechanism.measured_positions
    for actuator in mechanism.actuators:
        on = list(actuator.on.items())
        if len(on) != 1 or on[0][0] not in names:
            raise InputError(
                f"motor '{actuator.name}' has no measured joint of its own, which a PD law needs",
                file=mechanism.file,
                place="pd",
                remedy="measure the joint of every motor, or log efforts instead",
            )
        joints.append(names.index(on[0][0]))
        ratio.append(float(on[0][1]))
    return tuple(joints), np.array(ratio)


def with_servos(mechanism: Mechanism, settings: PdSettings) -> Mechanism:
    """The robot without viscous friction where kd is unknown, and with known bodies if that is asked.

    kd and viscous friction have the same column: an unknown kd holds both.
    """
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    damped = {damping_owner(mechanism, motor) for motor in settings.unknown("kd", motors)}
    drive = {
        owner: tuple(symbol for symbol in symbols if owner not in damped or not DRIVE_TERMS[symbol].viscous)
        for owner, symbols in mechanism.drive.items()
    }
    mechanism = replace(mechanism, drive={owner: symbols for owner, symbols in drive.items() if symbols})
    if settings.bodies == "open":
        return mechanism
    names = [parameter.name for parameter in parameter_table(mechanism) if parameter.kind == "inertial"]
    priors = prior_values(mechanism)
    lost = [name for name in names if name not in priors]
    if lost:
        raise InputError(
            f"pd: bodies are to be known, but the description has no value of {', '.join(lost[:4])}",
            file=mechanism.file,
            place="pd.bodies",
            remedy="complete the description, or leave `bodies:` out",
        )
    return with_known(mechanism, {name: priors[name] for name in names})


def damping_owner(mechanism: Mechanism, motor: str) -> str:
    """Who has the drive terms of a motor: the motor, or the joint that it is on."""
    on = next(actuator.on for actuator in mechanism.actuators if actuator.name == motor)
    joint = next(iter(on))
    return motor if motor in mechanism.drive or motor == joint or joint not in mechanism.drive else joint
