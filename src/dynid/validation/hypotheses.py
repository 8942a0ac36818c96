"""Corrections of a description or its logs that a wrong input would need, the cheap ones first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from dynid.checks.fault_columns import ALL, delay_change, zero_words
from dynid.checks.pose_columns import clock_notice, degrees_between
from dynid.common.arrays import Array, Float
from dynid.common.change import Change, rounded
from dynid.common.notices import Notice, notice
from dynid.linear_fit import LinearFit
from dynid.mechanism.drive_terms import DRIVE_TERMS, PLAIN_FRICTION, ROTOR
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.motion.log import Log
from dynid.statistics.estimate import ResidualTest

_UNKNOWN = "unknown_load"
_TAPS = 32  # samples to either side from which an effort between two samples is computed
_CLOCKS = (4.0, 0.25)  # squares of its factors
_LEAST_SWEEP = {"deg": 2.0 * np.pi, "mm": 1.0}  # of values in another unit, taken as rad or m
# Without and with a dry part, of both directions alike; the first is added where there is none.
_FRICTION = tuple(
    tuple(s for s, term in DRIVE_TERMS.items() if term.friction and s.isalpha() and term.dry is dry)
    for dry in (False, True)
)

Tests = Sequence[ResidualTest]


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One correction, and what is left of the residuals once it is fitted.

    Attributes:
        notice: The warning, if it is the cause.
        mechanism, logs: As they would be without the fault.
        name: The correction in a few words.
        scale: Factor of each measured position, where their unit is corrected: speeds that masks compare
            with change alike; empty: none.
        gains: Factor of each effort of its logs that is corrected, by name: residuals are compared as logged.
        fit: With it; None: not fitted yet.
        left: Part of the residual that remains, every effort alike.
        rms, rms_described: Residual of each effort with it and without it, in its unit.
        percent: 100 |Y - W chi| / |Y|.
        fitted: Values of the correction that were searched for the least residual.
        likely: Logarithm of the likelihood ratio to the description, for independent rows.
        dependence: How many rows count as one, from the residuals of this fit.
        added: Values that it adds to the description: parameters, and sizes that were searched.
        evidence: -log p, where p is the probability of such an improvement if the description is right.
        searched: The linear test of the quantity whose size was searched, with the size found; None: none.
    """

    notice: Notice
    mechanism: Mechanism
    logs: tuple[Log, ...]
    name: str
    fit: LinearFit | None = None
    left: float = 1.0
    rms: Mapping[str, float] = field(default_factory=dict)
    rms_described: Mapping[str, float] = field(default_factory=dict)
    percent: float = 0.0
    fitted: int = 0
    likely: float = 0.0
    dependence: float = 1.0
    added: int = 0
    evidence: float = 0.0
    scale: tuple[float, ...] = ()
    gains: Mapping[str, float] = field(default_factory=dict)
    searched: ResidualTest | None = None

    @property
    def code(self) -> str:
        """Of the warning."""
        return self.notice.code

    @property
    def p(self) -> float:
        """Of such an improvement if the description is right."""
        return float(np.exp(-self.evidence))


def other_gravity(
    mechanism: Mechanism, logs: tuple[Log, ...], tests: Sequence[ResidualTest]
) -> Iterator[Hypothesis]:
    """Gravity as a linear test found it, upside down, and along the other axes of the base."""
    g = np.asarray(mechanism.gravity, float)
    size = float(np.linalg.norm(g)) or 9.81
    axes = [sign * size * np.eye(3)[k] for k in range(3) for sign in (-1.0, 1.0)]
    other = [axis for axis in axes if not np.allclose(axis, g) and not np.allclose(axis, -g)]
    guesses = [-g, *other] if np.any(g) else other
    measured = [np.array(test.vector) for test in tests if test.vector]
    tilted = [pull for pull in measured if not any(np.allclose(pull, guess) for guess in guesses)]
    yield from (replace(_under(mechanism, logs, pull), fitted=3) for pull in tilted)
    yield from (_under(mechanism, logs, pull) for pull in guesses)


def other_clocks(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """A clock twice too fast or too slow, as by a wrong rate of the log: gravity four times as large, or a
    quarter. It is far from linear.
    """
    g = np.asarray(mechanism.gravity, float)
    yield from (_under(mechanism, logs, times * g) for times in _CLOCKS if np.any(g))


def _under(mechanism: Mechanism, logs: tuple[Log, ...], pull: Float[Array, "3"]) -> Hypothesis:
    """Another gravity in the base frame, in [m/s^2]."""
    vector = _listed(pull)
    remark = _gravity_notice(np.asarray(mechanism.gravity, float), pull, vector)
    return Hypothesis(remark, replace(mechanism, gravity=pull), logs, f"gravity [{vector}]")


def _gravity_notice(g: Float[Array, "3"], pull: Float[Array, "3"], vector: str) -> Notice:
    """Of gravity `pull` instead of the described g, both in the base frame, in [m/s^2]."""
    clock = clock_notice(g, pull)
    if clock is not None:
        return clock
    turned = "upside down" if np.any(g) else "missing"
    if np.any(g) and not np.allclose(pull, -g):
        turned = f"rotated by {degrees_between(g, pull):.3g} degrees"
    return notice("gravity-off", "turned", turned=turned, vector=vector, described=_listed(g))


def _listed(pull: Float[Array, "3"]) -> str:
    """Three digits of each axis; what is rounding beside the others is 0."""
    return ", ".join(f"{x:.3g}" for x in np.round(pull, 6) + 0.0)


def known_values(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """Values taken as exact are estimated instead: those of a body, of a drive term, of a payload."""
    for name, body in mechanism.bodies.items():
        if body.known:
            freed = replace(mechanism, bodies={**mechanism.bodies, name: replace(body, known={})})
            names = ", ".join(f"{symbol}_{name}" for symbol in body.known)
            yield Hypothesis(notice("known-off", names=names), freed, logs, f"other values of {names}")
    for term in dict.fromkeys(name.partition("_")[0] for name in mechanism.known):
        kept = {name: x for name, x in mechanism.known.items() if name.partition("_")[0] != term}
        names = ", ".join(name for name in mechanism.known if name not in kept)
        freed = replace(mechanism, known=kept)
        yield Hypothesis(notice("known-off", names=names), freed, logs, f"other values of {names}")
    for name, payload in mechanism.payloads.items():
        if payload.known and any(name in log.payloads for log in logs):
            yield Hypothesis(
                notice("payload-label", "known", body=name, names=", ".join(payload.known)),
                replace(mechanism, payloads={**mechanism.payloads, name: replace(payload, known={})}),
                logs,
                f"other values than the known ones of payload '{name}'",
            )


def payload_labels(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """Every log with each other payload, and with one that no log declares."""
    if len(logs) < 2:
        return
    known = list(
        dict.fromkeys([(), *(log.payloads for log in logs), *((name,) for name in mechanism.payloads)])
    )
    for i, log in enumerate(logs):
        for label in known:
            if label == log.payloads:
                continue
            said = f"'{', '.join(label)}'" if label else "no payload"
            yield Hypothesis(
                notice("payload-label", log=log.name, said=said, declared=_declared(log)),
                mechanism,
                _put(logs, {i: replace(log, payloads=label)}),
                f"log '{log.name}' with {said}",
            )
    for (i, a), (j, b) in combinations(enumerate(logs), 2):
        if a.payloads != b.payloads:
            yield Hypothesis(
                notice("payload-label", "exchanged", log=a.name, other=b.name),
                mechanism,
                _put(logs, {i: replace(a, payloads=b.payloads), j: replace(b, payloads=a.payloads)}),
                f"payloads of logs '{a.name}' and '{b.name}' exchanged",
            )
    carrier = _carrier(mechanism)
    if carrier is None:
        return
    wider = replace(mechanism, payloads={**mechanism.payloads, _UNKNOWN: Payload(_UNKNOWN, carrier)})
    for i, log in enumerate(logs):
        yield Hypothesis(
            notice("payload-label", "other", log=log.name, declared=_declared(log)),
            wider,
            _put(logs, {i: replace(log, payloads=(_UNKNOWN,))}),
            f"log '{log.name}' with another payload",
        )


def _declared(log: Log) -> str:
    return f"'{', '.join(log.payloads)}'" if log.payloads else "none"


def _carrier(mechanism: Mechanism) -> str | None:
    """The body that carries payloads: that of the declared ones, else the last; None: there is no joint.

    Of a closed robot it is the last one beside the loops (a tool), else the one that most loops hold.
    """
    declared = [payload.body for payload in mechanism.payloads.values()]
    if declared or not mechanism.joints:
        return declared[0] if declared else None
    if not mechanism.is_closed:
        return mechanism.joints[-1].child
    parents = {joint.parent for joint in mechanism.joints}
    held = [body for loop in mechanism.loops for body in (loop.body_a, loop.body_b) if body != "base"]
    ends = [joint.child for joint in mechanism.joints if joint.child not in parents]
    free = [body for body in ends if body not in held]
    return free[-1] if free else max(held, key=held.count, default=ends[-1])


def position_units(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """Angles in degrees, displacements in mm."""
    names, joints = logs[0].position_names, mechanism.joint_of_coordinate
    angle = np.array([_is_angle(mechanism, name) for name in names])
    length = np.array([name in joints and joints[name].kind is JointKind.PRISMATIC for name in names])
    sweep = np.max([np.ptp(log.q[log.valid], axis=0) for log in logs if log.valid.any()], axis=0, initial=0.0)
    for mask, factor, unit in ((angle, np.pi / 180.0, "deg"), (length, 1e-3, "mm")):
        # In degrees a motion of a tenth of a radian already sweeps as much.
        if mask.any() and np.max(sweep[mask]) > _LEAST_SWEEP[unit]:
            scale = np.where(mask, factor, 1.0)
            keys = ["q_{i}"] if mask.all() else [f"q_{k + 1}" for k in np.flatnonzero(mask)]
            change = {"columns": {key: {"unit": unit} for key in keys}}
            yield Hypothesis(
                notice("position-unit", unit=unit, change=change),
                mechanism,
                tuple(log.with_positions(scale) for log in logs),
                f"positions in {unit}",
                scale=tuple(scale.tolist()),
            )


def drive_terms(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """Friction or inertia of rotors, which most drives have and this description lacks."""
    given = {symbol for terms in mechanism.drive.values() for symbol in terms}
    friction = [symbols[0] for symbols in _FRICTION if not any(term.startswith(symbols) for term in given)]
    if friction:
        drive, names = _with_terms(mechanism, friction), ", ".join(friction)
        yield Hypothesis(
            notice("friction-missing", names=names, change=_drive_change(drive)),
            replace(mechanism, drive=drive),
            logs,
            f"friction {names} of the drives",
        )
    if not given & set(ROTOR):
        drive = _with_terms(mechanism, ROTOR[:1])
        yield Hypothesis(
            notice("rotor-missing", names=ROTOR[0], change=_drive_change(drive)),
            replace(mechanism, drive=drive),
            logs,
            f"rotor inertia {ROTOR[0]} of the drives",
        )


def _with_terms(mechanism: Mechanism, terms: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Terms of all drives with further ones."""
    owners = list(mechanism.drive) or [actuator.name for actuator in mechanism.actuators]
    return {name: tuple(dict.fromkeys((*mechanism.drive.get(name, ()), *terms))) for name in owners}


def _drive_change(drive: Mapping[str, tuple[str, ...]]) -> Change:
    """Drive terms by joint or motor; one list where all have the same."""
    terms = [list(terms) for terms in drive.values()]
    alike = all(one == terms[0] for one in terms)
    return {"drive": terms[0] if alike else dict(zip(drive, terms, strict=True))}


def passive_friction(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """Friction of the joints of a closed robot that no motor drives."""
    if not mechanism.is_closed:
        return
    bound = {coupling.joint for coupling in mechanism.couplings} | {pivot.name for pivot in mechanism.swivels}
    driven = {name for actuator in mechanism.actuators for name in actuator.on}
    names = [
        joint.name
        for joint in mechanism.joints
        if joint.kind in (JointKind.REVOLUTE, JointKind.PRISMATIC)
        and joint.name not in driven | bound
        and not set(mechanism.drive.get(joint.name, ())) & set(PLAIN_FRICTION)
    ]
    if names:
        drive = {
            name: tuple(dict.fromkeys((*mechanism.drive.get(name, ()), *PLAIN_FRICTION))) for name in names
        }
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        change = {"drive": {name: list(terms) for name, terms in drive.items()}}
        yield Hypothesis(
            notice("friction-missing", "passive", names=shown, change=change),
            replace(mechanism, drive={**mechanism.drive, **drive}),
            logs,
            f"friction of passive joints {shown}",
        )


def delays(
    mechanism: Mechanism, logs: tuple[Log, ...], tests: Sequence[ResidualTest]
) -> Iterator[Hypothesis]:
    """Efforts shifted by the delays that linear tests found."""
    for test in tests:
        if test.test != "delay" or not test.warned:
            continue
        columns = efforts_about(mechanism, test.about)
        subject = "the efforts are" if test.about == ALL else f"the effort of '{test.about}' is"
        late = "later" if test.value > 0 else "earlier"
        change = delay_change({test.about: test.value}, logs[0].effort_names)
        yield Hypothesis(
            notice("delay", "confirmed", who=subject, size=1e3 * abs(test.value), late=late, change=change),
            mechanism,
            tuple(_shifted(log, columns, test.value) for log in logs),
            f"delay of {test.about}",
        )


def gains(mechanism: Mechanism, logs: tuple[Log, ...], tests: Sequence[ResidualTest]) -> Iterator[Hypothesis]:
    """Efforts divided by the gains that linear tests found."""
    for test in tests:
        if test.test != "gain" or not test.warned or test.about == ALL or test.value <= -0.9:
            continue
        tau, efforts = np.ones(len(mechanism.actuators)), efforts_about(mechanism, test.about)
        if not efforts:  # an equation of several motors
            continue
        scale = 1.0 / (1.0 + test.value)
        tau[efforts] = scale
        percent, large = 100.0 * abs(test.value), "large" if test.value > 0 else "small"
        columns = {f"tau_{efforts[0] + 1}": {"scale": rounded(scale, 4)}}
        yield Hypothesis(
            notice(
                "gain",
                "confirmed",
                effort=test.about,
                percent=percent,
                large=large,
                change={"columns": columns},
            ),
            mechanism,
            tuple(replace(log, tau=log.tau * tau) for log in logs),
            f"gain of {test.about}",
            gains={test.about: scale},
        )


def shifted_zero(mechanism: Mechanism, logs: tuple[Log, ...], joint: int, size: float) -> Hypothesis:
    """A joint whose zero is off by `size`, in [rad] or [m]."""
    name = logs[0].position_names[joint]
    shift = np.zeros(len(logs[0].position_names))
    shift[joint] = size
    unit = "rad" if _is_angle(mechanism, name) else "m"
    shown = zero_words(size, unit)
    change = {"columns": {f"q_{joint + 1}": {"offset": rounded(size, 3)}}}
    return Hypothesis(
        notice("zero-offset", "confirmed", joint=name, shown=shown, change=change),
        mechanism,
        tuple(replace(log, q=log.q + shift, origins={}) for log in logs),
        f"zero of '{name}' corrected by {size:+.3g} {unit}",
        fitted=1,
    )


def efforts_about(mechanism: Mechanism, about: str) -> list[int]:
    """Columns of the efforts that a test is about; none if it is an equation of several motors."""
    names = [actuator.name for actuator in mechanism.actuators]
    return list(range(len(names))) if about == ALL else [i for i, name in enumerate(names) if name == about]


def _shifted(log: Log, columns: Sequence[int], seconds: float) -> Log:
    """Efforts as if they had been logged earlier by so much; their noise keeps its size.

    Interpolation between two samples would average their noise, and look like a better fit.
    """
    tau = log.tau.copy()
    whole = int(np.floor(seconds / log.dt))
    at = seconds / log.dt - whole - np.arange(-_TAPS, _TAPS + 1)
    kernel = np.sinc(at) * np.cos(0.5 * np.pi * at / (_TAPS + 1)) ** 2
    kernel /= kernel.sum()
    places = np.clip(np.arange(-_TAPS, len(tau) + _TAPS) + whole, 0, len(tau) - 1)
    for k in columns:
        tau[:, k] = np.convolve(tau[places, k], kernel[::-1], mode="valid")
    return replace(log, tau=tau)


def _is_angle(mechanism: Mechanism, name: str) -> bool:
    joint = mechanism.joint_of_coordinate.get(name)
    return joint is not None and joint.is_angle(name)


def _put(logs: tuple[Log, ...], new: dict[int, Log]) -> tuple[Log, ...]:
    return tuple(new.get(i, log) for i, log in enumerate(logs))
