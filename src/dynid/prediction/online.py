"""Online: the payload, the drift of friction and contacts, sample by sample, from a result.

    r = [tau_f]_s - [W(q_f, dq_f, ddq_f)]_s (chi + x)        x: load (10), drift of Fv and Fs of each joint

Positions and efforts go through the same fast causal filter f, 1 / (1 + s/w)^3, whose states are the filtered
signal and its two rates: no acceleration has to be measured, and both sides have the same delay. The slow
filter s, two poles, takes noise from both sides of the equations. W is not linear in q: W of slowly filtered
positions would differ from the filtered W by dq^2 / w^2, 4 % for a wrist at 20 rad/s. x is a
Kalman filter over r. The parameters chi of the result are considered: their covariance adds to the variance
of the innovations and to that of x, but they are not changed. The noise at low frequencies is estimated from
the innovations, which are correlated in time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.mechanism.frame import Frame
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.prediction.result_values import fitted_places, saved, standard_values
from dynid.projection.load import loading
from dynid.projection.model import model_named
from dynid.projection.projection import choose_rows
from dynid.regressor.layout import ABSENT, TreeRegressor, tree_regressor
from dynid.statistics.effort_prediction import covariance_root
from dynid.statistics.estimate import Estimate

_LOAD = "online load"
_RATE = 50.0  # of the updates, in [Hz]
_LAGS = 8  # of the innovations' autocovariance: 0.16 s
_MEMORY = 10.0  # s, of the same
_GUESS = 0.3  # s, of the same that the noise of the result counts as: its rows had another filter
_WINDOW = 5  # updates in the test for a change
# Mean squared innovation over its variance that makes a change, and below which noise is learnt.
_CHANGED, _QUIET = 8.0, 3.0
_SETTLED = 10.0  # time constants of the filter before its states are used
_FASTER = 5.0  # times the slow filter, and at most a tenth of the rate: the fast one
_GAP = 0.5  # time constants of the filter that a straight line bridges
_REVERSAL = 6.0  # time constants of the filter that a reversal lasts
_SLOW = 0.01  # rad/s or m/s: below, Coulomb friction can have any value up to its own
# Before anything is known of a load: 10 kg within 0.3 m.
_MASS, _MOMENT, _INERTIA = 10.0, 3.0, 1.0
_CONTACT = 5.0  # deviations of a residual


@dataclass(frozen=True, eq=False)
class OnlinePayload:
    """A payload as it is known now.

    Attributes:
        mass, mass_sigma: In [kg].
        com, com_sigma: Centre of mass in the frame of the carrying body, shape (3,), in [m]; NaN while the
            mass is not distinct from zero (less than 3 sigma).
    """

    mass: float
    mass_sigma: float
    com: Float[Array, "3"]
    com_sigma: Float[Array, "3"]


class Online:
    """Estimates that follow a stream of samples; nothing is allocated in `update`.

    Args:
        result: `result.json` of the robot, its folder, or an estimate.
        robot: Default: the robot of the result.
        body: That carries the payload; default the last body of the chain.
        payloads: Mounted already, and known to the result.
        rate: Of the samples, in [Hz]; where samples have time stamps, their usual rate.
        cutoff: Of the slow filter, in [Hz]: above the motion, below the noise.
        drift: Change of friction to be expected, in fractions of its value per square root of a minute.
    """

    def __init__(
        self,
        result: str | os.PathLike[str] | Estimate,
        *,
        robot: str | os.PathLike[str] | Mechanism | None = None,
        body: str | None = None,
        payloads: Sequence[str] = (),
        rate: float = 1000.0,
        cutoff: float = 20.0,
        drift: float = 0.01,
    ) -> None:
        estimate, experiment, mechanism = saved(result, robot)
        mounted = variant(mechanism, payloads=tuple(payloads))
        _check_robot(mounted, rate, cutoff)
        self.body = body or _last_body(mounted)
        if self.body not in mounted.bodies:
            raise InputError(
                f"no body '{self.body}' in robot '{mounted.name}'" + nearest(self.body, mounted.bodies),
                remedy="name the body that carries the payload",
            )
        load = Payload(_LOAD, self.body, Frame(np.eye(3), np.zeros(3)))
        loaded = replace(mounted, payloads={**mounted.payloads, _LOAD: load})
        parameters = parameter_table(mounted)
        model = model_named(estimate.model)
        rows = choose_rows(model.directions(mounted), None)
        values = standard_values(estimate, mounted, parameters, experiment, model, rows, mechanism.payloads)
        known = {parameter.name: i for i, parameter in enumerate(parameters)}
        every = parameter_table(loaded)
        self.rate, self.names = rate, tuple(actuator.name for actuator in mounted.actuators)
        regressor = tree_regressor(loaded, every, np.eye(len(self.names)), (*payloads, _LOAD))
        self._drifting = [name for name in known if name.startswith(("Fv_", "Fs_"))]
        self._chi = values.chi
        names = [parameter.name for parameter in every]
        at = np.array([known.get(name, ABSENT) for name in names])
        place = np.full(len(names), ABSENT)
        for k, symbol in enumerate(SYMBOLS):
            place[names.index(f"{symbol}_{_LOAD}")] = k
        for k, name in enumerate(self._drifting):
            place[names.index(name)] = len(SYMBOLS) + k
        fitted = fitted_places(estimate)
        has = values.M[:, fitted].any(axis=1)
        base = np.where(has, values.M[:, fitted].argmax(axis=1), ABSENT)
        self._lay_out(regressor, place, np.where(at == ABSENT, ABSENT, base[at]), at, loading(loaded, every))
        self._start(regressor, estimate, rate, cutoff)
        coulomb = [known.get(f"Fs_{name}", ABSENT) for name in self.names]
        self._at_rest = np.array([0.0 if i == ABSENT else values.chi[i] ** 2 for i in coulomb])
        per_step = drift / math.sqrt(60.0 * _RATE)
        self._walk = np.array([(per_step * values.chi[known[name]]) ** 2 for name in self._drifting])
        root = covariance_root(estimate.covariance)
        self._P_cc = root @ root.T
        self.reset()

    def _lay_out(
        self, regressor: TreeRegressor, place: Array, base: Array, at: Array, carried: Array
    ) -> None:
        """What each entry of W is multiplied by, and where it acts."""
        layout = regressor.layout
        columns = layout.columns
        inside, safe = columns != ABSENT, np.maximum(columns, 0)
        coefficient = np.where(inside & (at[safe] != ABSENT), self._chi[np.maximum(at[safe], 0)], 0.0)
        state = np.where(inside, place[safe], ABSENT)
        self._layout = (layout.start, coefficient, inside & carried[safe], state)
        self._places = (layout.start, state, np.where(inside, base[safe], ABSENT))
        m, e = len(self.names), layout.n_entries
        self._entries = np.zeros((e, 1))
        self._slow = (np.zeros((2, e)), np.zeros((2, m)), np.zeros((2, 2, m)), np.zeros((e, 1)))

    def _start(self, regressor: TreeRegressor, estimate: Estimate, rate: float, cutoff: float) -> None:
        """Arrays that are used again for every sample."""
        m = len(self.names)
        q, dq, ddq, Y = (np.zeros((1, m)) for _ in range(4))
        batch = regressor.batch(q, dq, ddq, Y, np.zeros((1, 2 * m)))
        links, bodies, gravity, pairs, drives, given, motion, combination, room = batch
        self._robot = (links, bodies, gravity, pairs, drives, given, combination, room)
        self._motion = motion
        self._w = 2.0 * math.pi * cutoff
        self._fast = 2.0 * math.pi * min(_FASTER * cutoff, 0.1 * rate)
        self._lag, self._settling = _REVERSAL / self._w, _SETTLED / self._w
        self._longest = max(_GAP / self._w, 2.5 / rate)
        self._q, self._tau = np.zeros(m), np.zeros(m)
        self._before = (np.zeros(m), np.zeros(m))
        self._states = (np.zeros((3, m)), np.zeros((3, m)))
        self._first_R = 4.0 * _noise(estimate, self.names) ** 2  # correlated: as if every fourth row counted

    def reset(self) -> None:
        """Forget all samples."""
        nx, nc, m = len(SYMBOLS) + len(self._drifting), len(self._P_cc), len(self.names)
        self._x, self._P_xx, self._P_xc = np.zeros(nx), np.zeros((nx, nx)), np.zeros((nx, nc))
        self._columns = (np.zeros(nx), np.zeros(nc), np.zeros(nx), np.zeros(nc))
        self._residual, self._left, self._variance = np.zeros(m), np.zeros(m), self._first_R.copy()
        self._R = self._first_R.copy()
        self._past, self._memory = np.zeros((m, _LAGS)), np.zeros((m, _LAGS))
        self._memory[:, 0], self._learnt = self._first_R, np.full(m, _GUESS * _RATE)
        self._window = np.zeros(_WINDOW)
        self._updates = self._since = self._tick = 0
        self._time = self._waited = self._ready = self._begins = self._waits = 0.0
        self._begun = False
        self._stamp = math.nan
        self.changes: list[float] = []
        self._open()

    def _open(self) -> None:
        """Forget the load; what is known of friction stays."""
        n = len(SYMBOLS)
        self._P_xx[:n], self._P_xx[:, :n], self._P_xc[:n] = 0.0, 0.0, 0.0
        prior = {"M": _MASS, "MX": _MOMENT, "MY": _MOMENT, "MZ": _MOMENT}
        for k, symbol in enumerate(SYMBOLS):
            self._P_xx[k, k] = prior.get(symbol, _INERTIA) ** 2
        self._window[:] = 0.0
        self._since = 0

    def update(self, q: Float[Array, "m"], tau: Float[Array, "m"], t: float | None = None) -> None:
        """One sample: positions and efforts of all joints, in [rad] or [m] and [N m] or [N].

        Args:
            t: Its time stamp, in [s]; default: one period after the sample before. A sample that is not later
                than the one before, or not finite, is lost: the next one bridges a short gap; after a longer
                one the filter settles anew.
        """
        from dynid.prediction.online_kernels import filtered, residuals

        passed = 1.0 / self.rate if t is None or math.isnan(self._stamp) else t - self._stamp
        if not passed > 0.0:
            return
        self._stamp = math.nan if t is None else t
        self._waited += passed
        self._q[:], self._tau[:] = q, tau
        if not (np.isfinite(self._q).all() and np.isfinite(self._tau).all()):
            return
        dt, self._waited = self._waited, 0.0
        if self._time == 0.0 or dt > self._longest:
            self._begins = self._time + dt + _SETTLED / self._fast
            self._ready, self._begun = self._begins + self._settling, False
            for signal, old, x in zip((self._q, self._tau), self._before, self._states, strict=True):
                x[:], old[:] = 0.0, signal
                x[0] = signal
        filtered(self._fast, dt, self._before[0], self._q, self._states[0])
        filtered(self._fast, dt, self._before[1], self._tau, self._states[1])
        self._time += dt
        tick = int(self._time * _RATE + 1e-6)
        due, self._tick = tick > self._tick, tick
        if self._time < self._begins:
            return
        share = -math.expm1(-self._w * dt) if self._begun else 1.0
        self._begun = True
        residuals(
            self._robot,
            self._layout,
            self._motion,
            *self._states,
            self._x,
            share,
            self._slow,
            self._entries,
            self._residual,
        )
        if self._time < self._ready:
            self._residual[:] = 0.0
        elif due and self._time >= self._waits:
            self._assimilate()

    def _assimilate(self) -> None:
        """An update of the state with all rows, and the test for a change of load."""
        from dynid.prediction.online_kernels import remembered, updated

        n = len(SYMBOLS)
        self._P_xx.reshape(-1)[n * (len(self._x) + 1) :: len(self._x) + 1] += self._walk  # diagonal
        left = self._left
        left[:] = self._residual
        total = 0.0
        for row in range(len(left)):
            rest = self._at_rest[row] if self._reversing(row) else 0.0
            noise, innovation = self._R[row] + rest, left[row]
            S = updated(
                self._places,
                self._entries,
                left,
                noise,
                self._x,
                self._P_xx,
                self._P_xc,
                self._P_cc,
                row,
                self._columns,
            )
            total += innovation**2 / S
            self._variance[row] = S
            if rest == 0.0 and 2.0 * noise > S and innovation**2 < _QUIET**2 * S:
                self._learnt[row] = min(self._learnt[row] + 1.0, _MEMORY * _RATE)
                weight = 1.0 / self._learnt[row]
                self._R[row] = remembered(innovation, row, weight, self._past, self._memory)
        self._updates += 1
        self._since += 1
        self._window[self._updates % _WINDOW] = total / len(left)
        if self._since > 2 * _WINDOW and self._window.mean() > _CHANGED:
            self.changes.append(self.t)
            self._open()
            self._waits = self._time + self._settling  # until the filters have forgotten the old load

    def _reversing(self, row: int) -> bool:
        """Whether a joint is or was at rest within the memory of the filter: the sign of friction is open."""
        speed, rate = np.abs(self._slow[2][:, 1, row])
        return bool(speed < _SLOW + self._lag * rate)

    @property
    def t(self) -> float:
        """Time since the first sample, in [s]."""
        return self._time

    @property
    def payload(self) -> OnlinePayload:
        """The payload on `body`, beside those mounted already."""
        order = {symbol: k for k, symbol in enumerate(SYMBOLS)}
        mass, moments = order["M"], [order["MX"], order["MY"], order["MZ"]]
        M, sigma = float(self._x[mass]), math.sqrt(self._P_xx[mass, mass])
        com, deviation = np.full(3, np.nan), np.full(3, np.nan)
        if abs(M) > 3.0 * sigma:
            com = self._x[moments] / M
            # d(MX / M) = dMX / M - com dM / M
            J = np.zeros((3, len(SYMBOLS)))
            J[np.arange(3), moments], J[:, mass] = 1.0 / M, -com / M
            n = len(SYMBOLS)
            deviation = np.sqrt(np.diag(J @ self._P_xx[:n, :n] @ J.T))
        return OnlinePayload(M, sigma, com, deviation)

    @property
    def friction(self) -> dict[str, tuple[float, float]]:
        """Change of each friction parameter since the result, and its sigma, in the units of the result."""
        n = len(SYMBOLS)
        sigma = np.sqrt(np.diag(self._P_xx)[n:])
        return {name: (float(self._x[n + k]), float(sigma[k])) for k, name in enumerate(self._drifting)}

    @property
    def residual(self) -> Float[Array, "m"]:
        """Effort that nothing explains (a contact), filtered, in [N m] or [N]."""
        return self._residual.copy()

    @property
    def residual_sigma(self) -> Float[Array, "m"]:
        """Its deviation without a contact, from the last update."""
        return np.sqrt(self._variance)

    @property
    def contact(self) -> bool:
        """Whether a residual exceeds five times its deviation now."""
        return bool(np.any(np.abs(self._residual) > _CONTACT * np.sqrt(self._variance)))


def _check_robot(robot: Mechanism, rate: float, cutoff: float) -> None:
    """Refuse what is not an open chain of measured, driven joints."""
    names = tuple(actuator.name for actuator in robot.actuators)
    plain = not robot.is_closed and robot.measured_positions == robot.positions == robot.coordinates == names
    if not plain or robot.terms or robot.mounted_model:
        raise InputError(
            f"robot '{robot.name}' is not an open chain whose joints are all measured and driven",
            file=robot.file,
            remedy="use payload_from_torques on recorded logs of this robot",
        )
    if not (rate > 0.0 and 0.0 < cutoff < 0.1 * rate):
        raise InputError(
            f"a cutoff of {cutoff:g} Hz at {rate:g} samples a second is not possible",
            remedy="choose a cutoff between 0 and a tenth of the rate",
        )


def _last_body(robot: Mechanism) -> str:
    """The one body that carries no other."""
    parents = {joint.parent for joint in robot.joints}
    ends = [name for name in robot.bodies if name not in parents]
    if len(ends) != 1:
        raise InputError(
            f"robot '{robot.name}' has {len(ends)} last bodies: {', '.join(ends)}",
            remedy="name the one that carries the payload: Online(result, body=...)",
        )
    return ends[0]


def _noise(estimate: Estimate, names: Sequence[str]) -> Float[Array, "m"]:
    """Residual of each joint in the result, in [N m] or [N]."""
    rms_of = {group.name: group.rms for group in estimate.fit.groups}
    usual = max(rms_of.values(), default=1.0)
    return np.array([rms_of.get(name, usual) for name in names])
