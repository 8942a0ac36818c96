"""Controllers at one state: feedback, inverse dynamics of the controller's model, and encoder readings.

Tables, memory and their indices: see `layout`.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating as kernel
from dynid.common.compiled import allocating_inner as inner
from dynid.common.compiled import for_one_sample
from dynid.dynamics.kernels import reduced_tile as _reduced_tile
from dynid.dynamics.kernels import room_for as _room_for
from dynid.kinematics.newton_kernels import march as _march
from dynid.kinematics.newton_kernels import motion_rates as _motion_rates
from dynid.kinematics.step_kernels import copy
from dynid.simulation.plant.drive_kernels import resisting, term_efforts
from dynid.simulation.plant.layout import (
    BEFORE,
    DELAY,
    LAST_TICK,
    NOW,
    PASSED,
    PERIOD,
    POSITION,
    RATE,
    STEPS,
)
from dynid.simulation.plant.small_kernels import dot

room = for_one_sample(_room_for)
reduced = for_one_sample(_reduced_tile)
march = for_one_sample(_march)
motion_rates = for_one_sample(_motion_rates)
_NEWTON = 10


@inner
def add_terms(terms, q, dq, N, drift, M, h):
    """Add the declared columns to the mass matrix M (d, d) and to h (d,)."""
    if terms is None:
        return
    d, zero = h.size, np.zeros(dq.size)
    base = zero.copy()
    term_efforts(terms, q, dq, drift, False, base)
    h += N.T @ base
    for c in range(d):
        shifted = zero.copy()
        term_efforts(terms, q, dq, drift + np.ascontiguousarray(N[:, c]), False, shifted)
        M[:, c] += N.T @ (shifted - base)


@inner
def equations(linkage, masses, terms, q, dq, space):
    """N (v, d), drift (v,), M (d, d) and h (d,) of a state (1, n_q), (1, v)."""
    d, n_v = linkage.plan[0].size, dq.shape[1]
    reduced(linkage.closure, linkage.plan, masses, q, dq, space)
    N, drift, M, h = np.empty((n_v, d)), space.drift.copy(), np.empty((d, d)), space.h.copy()
    for v in range(n_v):
        copy(space.basis, v * d, N[v], 0, d)
    for a in range(d):
        for c in range(a + 1):
            M[a, c] = M[c, a] = space.M[a * d + c]
    add_terms(terms, q[0], dq[0], N, drift, M, h)
    return N, drift, M, h


@inner
def inverse_efforts(linkage, model, C, q, dq, wanted, space):
    """Minimum-norm efforts for the motor accelerations `wanted`, by a model with smooth friction."""
    masses, terms, friction = model
    N, drift, M, h = equations(linkage, masses, terms, q, dq, space)
    J = C @ N
    ddy = np.linalg.pinv(J) @ (wanted - C @ drift)
    s, z = friction.D @ dq[0], np.zeros(friction.laws.shape[0])
    rub = np.empty(s.size)
    resisting(friction, s, np.tanh(s / friction.width), z, rub)
    rows = M @ ddy + h + N.T @ (friction.D.T @ rub)
    return np.linalg.pinv(np.ascontiguousarray(J.T)) @ rows


@inner
def _asked(control, Q, C, wanted, q, dq):
    """Efforts, or motor accelerations, of the gains at motor positions Q q and velocities C dq."""
    asked = wanted.copy()
    for a in range(asked.size):
        asked[a] -= control.kp[a] * dot(Q[a], q) + control.kd[a] * dot(C[a], dq)
    return asked


@inner
def feedback(linkage, model, control, wanted, extra, q, dq, space):
    """Efforts (a,) of a controller that knows the true state, (1, n_q) and (1, v)."""
    asked = _asked(control, control.Q, control.C, wanted, q[0], dq[0])
    if model is None:
        return asked
    return extra + inverse_efforts(linkage, model, control.C, q, dq, asked, space)


@inner
def tick(linkage, model, control, memory, wanted, extra, noise, space):
    """Efforts of a controller that reads its encoders now and holds the efforts until the next tick."""
    Qe, numbers, seen, held, counters = control.Qe, control.numbers, memory.seen, memory.held, memory.counters
    y = _read(memory, numbers[DELAY], control.resolution, noise)
    for e in range(y.size):
        rate = (y[e] - seen[POSITION, e]) / numbers[PERIOD]
        seen[RATE, e] += numbers[PASSED] * (rate - seen[RATE, e])
        seen[POSITION, e] = y[e]
    asked = _asked(control, Qe, Qe, wanted, y, seen[RATE])
    if model is not None:
        _believe(linkage, control.sensors, y, seen[RATE], memory.q, memory.dq)
        asked = extra + inverse_efforts(linkage, model, control.C, memory.q, memory.dq, asked, space)
    copy(held[NOW] if counters[LAST_TICK] >= 0 else asked, 0, held[BEFORE], 0, asked.size)
    copy(asked, 0, held[NOW], 0, asked.size)
    counters[LAST_TICK] = counters[STEPS]


@inner
def _read(memory, delay, resolution, noise):
    """Encoder positions `delay` steps ago, by cubics through positions and velocities; noise, then steps."""
    ring, rates, count = memory.ring, memory.rates, memory.counters[STEPS]
    size = ring.shape[0]
    back = min(delay, float(count))
    whole_steps = int(np.floor(back))
    u = back - whole_steps
    late = (count - whole_steps) % size
    y = ring[late].copy()
    if u > 0.0:
        # Between a state and the one before it; rates are per step.
        before = (count - whole_steps - 1) % size
        w = 1.0 - u
        for e in range(y.size):
            a, b, va, vb = ring[before, e], ring[late, e], rates[before, e], rates[late, e]
            c2, c3 = 3.0 * (b - a) - 2.0 * va - vb, va + vb - 2.0 * (b - a)
            y[e] = a + w * (va + w * (c2 + w * c3))
    for e in range(y.size):
        y[e] += noise[e]
        if resolution[e] > 0.0:
            y[e] = np.rint(y[e] / resolution[e]) * resolution[e]
    return y


@inner
def remember(control, memory, q, dq, h):
    """Store the encoder positions after a step."""
    at_q, at_v, counters = control.at_q, control.at_v, memory.counters
    counters[STEPS] += 1
    place = counters[STEPS] % memory.ring.shape[0]
    for e in range(at_q.size):
        memory.ring[place, e] = q[0, at_q[e]]
        memory.rates[place, e] = h * dq[0, at_v[e]]


@inner
def _believe(linkage, sensors, y, rates, q, dq):
    """The state that corresponds to encoder positions and velocities: Newton from the previous state."""
    closure, plan = linkage
    wanted, given = y.reshape(1, y.size).copy(), rates.reshape(1, y.size).copy()
    first, count = np.zeros(1, np.int64), np.ones(1, np.int64)
    done, solved = np.zeros(1, np.bool_), q.copy()
    march(closure, plan, sensors, wanted, first, count, False, q.copy(), _NEWTON, solved, done)
    if done[0]:
        q[:] = solved
    N = np.empty((1, dq.shape[1], plan[0].size))
    none, judged = np.empty((0, y.size)), np.empty(1)
    spare, still = np.empty(1), np.zeros_like(dq)
    motion_rates(
        closure, plan, sensors, q, none, given, none, False, dq, none, N, judged, spare, still, np.zeros(3)
    )


@inner
def _bodies(model):
    if model is None:
        return 0
    return model.masses.inertia.shape[0]


@kernel
def feedback_once(linkage, model, control, wanted, extra, q, dq):
    """The same as `feedback`, for engines outside the kernels."""
    space = room(linkage.closure, linkage.plan, _bodies(model), q.shape[1], dq.shape[1])
    return feedback(linkage, model, control, wanted, extra, q, dq, space)


@kernel
def tick_once(linkage, model, control, memory, wanted, extra, noise):
    """The same as `tick`, for engines outside the kernels."""
    space = room(linkage.closure, linkage.plan, _bodies(model), memory.q.shape[1], memory.dq.shape[1])
    tick(linkage, model, control, memory, wanted, extra, noise, space)


@kernel
def remember_once(control, memory, q, dq, h):
    """The same as `remember`, for engines outside the kernels."""
    remember(control, memory, q, dq, h)
