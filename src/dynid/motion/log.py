"""Log: one recording, cleaned, in SI units, on a uniform clock within each segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.brief import one_line
from dynid.common.notices import Notice
from dynid.motion.guess import Guess


@dataclass(frozen=True, eq=False)
class Servo:
    """What the servos of a log without efforts knew.

    Attributes:
        q: Positions that the encoders showed, shape (n, m), as `q` of the log before any bias was removed.
        feedforward: Efforts commanded in addition to the PD law, shape (n, a), in [N m] or [N].
        joints: Place of each motor's joint among the positions, (a,).
        ratio: Velocity of each motor per velocity of its joint, shape (a,), dimensionless.
        limited: Where a motor is at its largest effort, so that its law does not give it, shape (n, a); None:
            nowhere.
    """

    q: Float[Array, "n m"]
    feedforward: Float[Array, "n a"]
    joints: tuple[int, ...]
    ratio: Float[Array, "a"]
    limited: Bool[Array, "n a"] | None = None


@dataclass(frozen=True, eq=False)
class Log:
    """One recording as used by the later stages.

    Axis letters: `n` samples, `m` measured position coordinates, `a` actuators.

    Attributes:
        t: Time, shape (n,), in [s].
        q: Positions of the measured joints, shape (n, m), in [rad], [m] or quaternion entries.
        dq: Measured rates of `q`, shape (n, m), per second; None where the log has none.
        ddq: Measured second rates, shape (n, m), per second squared; None where the log has none.
        tau: Efforts in the order of the actuators, shape (n, a), in [N m] or [N]; NaN columns
            where the log has no effort for the actuator.
        effort_present: Which columns of `tau` the log has, shape (a,).
        position_names: Names of the columns of `q`.
        effort_names: Names of the columns of `tau`.
        segments: Ranges [start, stop) of uniform pieces; nothing is ever filtered across them.
        dt: The step of every segment, in [s].
        valid: Samples that may be used, shape (n,): those inside a segment.
        payloads: Names of the payloads mounted during this recording.
        mapping: Canonical column (`q_1`, `tau_2`, ...) -> column of the file.
        guesses: Columns that were matched although their names are not canonical.
        choices: What the reader decided, in words.
        origins: Positions of all joints of the robot at some samples, each of shape (n_q,), where they are
            known: the loops are tracked from there to the later samples.
        entry: What the experiment says about this log beyond its payloads: columns, and the part that is
            used (`from`, `to`, `exclude`, `runs`).
        q_ref: Reference (commanded) positions, shape (n, m), as `q`; None where the log has none.
        lengths: Locked length of each cable in each segment as logged, shape (s, c), in [m]; None: not
            logged, or among the positions.
        servo: What efforts follow from if the log has none of its own; None: they were logged.
    """

    name: str
    file: str | None
    sha256: str | None
    t: Float[Array, "n"]
    q: Float[Array, "n m"]
    dq: Float[Array, "n m"] | None
    ddq: Float[Array, "n m"] | None
    tau: Float[Array, "n a"]
    effort_present: Bool[Array, "a"]
    position_names: tuple[str, ...]
    effort_names: tuple[str, ...]
    segments: tuple[tuple[int, int], ...]
    dt: float
    valid: Bool[Array, "n"]
    payloads: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    mapping: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    q_ref: Float[Array, "n m"] | None = None
    entry: Mapping[str, object] = field(default_factory=dict)
    origins: Mapping[int, Float[Array, "p"]] = field(default_factory=dict)
    guesses: tuple[Guess, ...] = ()
    servo: Servo | None = None
    lengths: Float[Array, "s c"] | None = None

    __repr__ = one_line

    def efforts_known(self, start: int, stop: int) -> bool:
        """Whether all samples of a range may be used, with all their efforts."""
        limited = None if self.servo is None else self.servo.limited
        return bool(self.valid[start:stop].all()) and (limited is None or not limited[start:stop].any())

    def with_positions(self, scale: Float[Array, "m"], order: Sequence[int] | None = None) -> Log:
        """The log with its positions (and their rates) scaled, after they are put in order."""
        rows = list(range(len(scale))) if order is None else list(order)
        dq, ddq = (None if x is None else x[:, rows] * scale for x in (self.dq, self.ddq))
        return replace(self, q=self.q[:, rows] * scale, dq=dq, ddq=ddq, origins={})


_LOOKED_AT = 1000  # samples of a run


def runs_by_content(logs: Sequence[Log]) -> list[tuple[int, int, int]]:
    """Number of the log, first sample and end of every run, in an order that follows from the runs alone.

    The longest first; of equal ones that with the smaller mean position. Random numbers and folds that are
    dealt out in this order do not depend on the order in which runs or logs are given.
    """

    def key(run: tuple[int, int, int]) -> tuple[int, float]:
        i, start, stop = run
        every = max(1, (stop - start) // _LOOKED_AT)
        return start - stop, float(np.mean(logs[i].q[start:stop:every]))

    return sorted(((i, *run) for i, log in enumerate(logs) for run in log.segments), key=key)


def named_apart(logs: Sequence[Log]) -> list[Log]:
    """The logs, each with a name of its own: with that of its folder or a number, where another has the same.

    Runs and blocks of time are found by the name of their log: those of two logs would count as simultaneous.
    """
    names = [log.name for log in logs]
    for k, log in enumerate(logs):
        if names.count(log.name) > 1 and log.file is not None:
            names[k] = PurePath(PurePath(log.file).parent.name, log.name).as_posix()
    apart: list[str] = []
    for name in names:
        numbered = (f"{name} ({number})" for number in range(2, len(names) + 2))
        apart.append(next(free for free in (name, *numbered) if free not in apart))
    return [
        log if log.name == name else replace(log, name=name) for log, name in zip(logs, apart, strict=True)
    ]
