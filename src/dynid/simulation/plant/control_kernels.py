"""Controllers at one state: feedback, inverse dynamics of the controller's model, and encoder readings.

Tables `control`: kp, kd (a,); Q, C of the motors over positions and velocities (a, q), (a, v); encoders:
position and velocity index (e,), resolution (e,), their part of Q (a, e); numbers: tick T [s], delay in
steps, low-pass gain of a new velocity; encoders as `Sensors`. The controller's model, or None for a
controller without one: bodies, gravity, inertia, rotors, declared columns, friction.
Memory: ring of encoder positions and velocities after each step (r, e) twice; read positions and filtered
velocities (2, e); estimated pose (1, q) and velocity (1, v); efforts held since this tick and the previous
one (2, a); counters: steps so far, step of the last tick.

Branches on None are resolved when Numba compiles: absent features cost nothing.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner, kernel
from dynid.dynamics.kernels import reduced_tile as _reduced_tile
from dynid.dynamics.kernels import room_for as _room_for
from dynid.kinematics.newton_kernels import march as _march
from dynid.kinematics.newton_kernels import tangent_rates as _tangent_rates
from dynid.kinematics.single_sample import alone
from dynid.simulation.plant.drive_kernels import resisting
from dynid.simulation.plant.term_kernels import term_efforts

room = alone(_room_for)
reduced = alone(_reduced_tile)
march = alone(_march)
tangent_rates = alone(_tangent_rates)
_NEWTON = 10


@inner
def add_terms(terms, q, dq, N, drift, M, h):
    """Add the declared columns to the mass matrix M (d, d) and to h (d,)."""
    if terms is None:
        return
    d, zero = h.size, np.zeros(dq.size)
    here = zero.copy()
    term_efforts(terms, q, dq, drift, False, here)
    h += N.T @ here
    for c in range(d):
        there = zero.copy()
        term_efforts(terms, q, dq, drift + np.ascontiguousarray(N[:, c]), False, there)
        M[:, c] += N.T @ (there - here)


@inner
def whole(space, d, n_v):
    """N (v, d), drift (v,), M (d, d) and h (d,) of a reduced state."""
    N, drift = space[6].reshape(n_v, d).copy(), space[7].copy()
    M, h = space[8].reshape(d, d).copy(), space[9].copy()
    for a in range(d):
        for c in range(a):
            M[c, a] = M[a, c]
    return N, drift, M, h


@inner
def inverse_efforts(closure, plan, model, C, q, dq, wanted, space):
    """Minimum-norm efforts for the motor accelerations `wanted`, by a model with smooth friction."""
    bodies, gravity, inertia, rotors, terms, drives = model
    reduced(closure, plan, bodies, gravity, inertia, rotors, q, dq, space)
    N, drift, M, h = whole(space, plan[0].size, dq.shape[1])
    add_terms(terms, q[0], dq[0], N, drift, M, h)
    J = C @ N
    ddy = np.linalg.pinv(J) @ (wanted - C @ drift)
    s, z = drives[0] @ dq[0], np.zeros(drives[3].shape[0])
    rub = np.empty(s.size)
    resisting(drives, s, z, rub)
    rows = M @ ddy + h + N.T @ (drives[0].T @ rub)
    return np.linalg.pinv(np.ascontiguousarray(J.T)) @ rows


@inner
def feedback(closure, plan, model, control, wanted, extra, q, dq, space):
    """Efforts (a,) of a controller that knows the true state, (1, n_q) and (1, v)."""
    kp, kd, Q, C = control[0], control[1], control[2], control[3]
    asked = wanted - kp * (Q @ q[0]) - kd * (C @ dq[0])
    if model is None:
        return asked
    return extra + inverse_efforts(closure, plan, model, C, q, dq, asked, space)


@inner
def tick(closure, plan, model, control, memory, wanted, extra, noise, space):
    """Efforts of a controller that reads its encoders now and holds the efforts until the next tick."""
    kp, kd, Qe, numbers = control[0], control[1], control[7], control[8]
    seen, held = memory[2], memory[5]
    y = _read(memory, numbers[1], control[6], noise)
    rate = (y - seen[0]) / numbers[0]
    seen[1] += numbers[2] * (rate - seen[1])
    seen[0] = y
    asked = wanted - kp * (Qe @ y) - kd * (Qe @ seen[1])
    if model is not None:
        _believe(closure, plan, control[9], y, seen[1], memory[3], memory[4])
        asked = extra + inverse_efforts(closure, plan, model, control[3], memory[3], memory[4], asked, space)
    held[1] = held[0]
    held[0] = asked
    if memory[6][1] < 0:
        held[1] = asked
    memory[6][1] = memory[6][0]


@inner
def _read(memory, delay, resolution, noise):
    """Encoder positions `delay` steps ago, by cubics through positions and velocities; noise, then steps."""
    ring, rates, count = memory[0], memory[1], memory[6][0]
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
    at_q, at_v, counters = control[4], control[5], memory[6]
    counters[0] += 1
    place = counters[0] % memory[0].shape[0]
    for e in range(at_q.size):
        memory[0][place, e] = q[0, at_q[e]]
        memory[1][place, e] = h * dq[0, at_v[e]]


@inner
def _believe(closure, plan, sensors, y, rates, q, dq):
    """The state that corresponds to encoder positions and velocities: Newton from the previous state."""
    wanted, given = y.reshape(1, y.size).copy(), rates.reshape(1, y.size).copy()
    first, count = np.zeros(1, np.int64), np.ones(1, np.int64)
    done, found = np.zeros(1, np.bool_), q.copy()
    march(closure, plan, sensors, wanted, first, count, False, q.copy(), _NEWTON, found, done)
    if done[0]:
        q[:] = found
    N = np.empty((1, dq.shape[1], plan[0].size))
    gamma = np.zeros((1, closure[1][3][-1] + closure[3][3].size))
    tangent_rates(closure, plan, sensors, q, given, gamma, dq, N, np.empty(1), np.empty(1))


@inner
def _bodies(model):
    if model is None:
        return 0
    return model[0][0].size


@kernel
def feedback_once(closure, plan, model, control, wanted, extra, q, dq):
    """The same as `feedback`, for engines outside the kernels."""
    space = room(closure, plan, _bodies(model), q.shape[1], dq.shape[1])
    return feedback(closure, plan, model, control, wanted, extra, q, dq, space)


@kernel
def tick_once(closure, plan, model, control, memory, wanted, extra, noise):
    """The same as `tick`, for engines outside the kernels."""
    space = room(closure, plan, _bodies(model), memory[3].shape[1], memory[4].shape[1])
    tick(closure, plan, model, control, memory, wanted, extra, noise, space)


@kernel
def remember_once(control, memory, q, dq, h):
    """The same as `remember`, for engines outside the kernels."""
    remember(control, memory, q, dq, h)
