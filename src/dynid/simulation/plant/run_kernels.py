"""Time integration: Runge-Kutta steps with friction and controller, and projection onto the loops.

M ddy + h = N^T (C^T tau - D^T resist),      ddq = N ddy + drift

Projection onto the loops: dependent coordinates take Newton steps until the loops are closed; independent
ones are fixed, and their velocities give the others, dq = N dy.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import for_one_sample, inner, kernel
from dynid.kinematics.closure_kernels import closure_tile, gather
from dynid.kinematics.kernels import pose_states
from dynid.kinematics.newton_kernels import move_tile, normalise
from dynid.kinematics.step_kernels import (
    add_along,
    cholesky_solve,
    clear,
    copy,
    factorise,
    substitute,
    tangents,
)
from dynid.kinematics.tile import LANES
from dynid.simulation.plant.control_kernels import equations, feedback, remember, room, tick
from dynid.simulation.plant.drive_kernels import bending, load_friction, resisting, term_efforts
from dynid.simulation.plant.layout import BEFORE, LAST_TICK, NOW, STEPS

_ARRIVED = 3e-8  # the error after a step of this size is its square: below rounding
_PATIENCE = 8


@inner
def position_rates_tile(tree, q, dq, out):
    """Time derivatives (LANES, n_q): velocities, and for a quaternion q (0, omega) / 2."""
    kind, q_start, v_start = tree[1], tree[2], tree[3]
    for i in range(kind.size):
        p, v = q_start[i], v_start[i]
        for k in range(LANES):
            if kind[i] == 3:
                w, x, y, z = q[k, p], q[k, p + 1], q[k, p + 2], q[k, p + 3]
                a, b, c = 0.5 * dq[k, v], 0.5 * dq[k, v + 1], 0.5 * dq[k, v + 2]
                out[k, p] = -x * a - y * b - z * c
                out[k, p + 1] = w * a + y * c - z * b
                out[k, p + 2] = w * b + z * a - x * c
                out[k, p + 3] = w * c + x * b - y * a
            elif kind[i] != 0:
                out[k, p] = dq[k, v]


@inner
def unit_tile(tree, q, tile):
    """Normalise the quaternions of q (LANES, n_q)."""
    gather(q, 0, tile)
    normalise(tree, tile)
    _spread(tile, q)


@inner
def settle_tile(closure, plan, q, dq, space):
    """Project states q (LANES, n_q), dq (LANES, v) onto the closures; `space` as of `room_for`."""
    tree, loops, equations, linear, _ = closure
    state, work, f, entries, small = space.state, space.work, space.f, space.entries, space.small
    basis, step, along, tile = space.basis, space.drift, space.h, space.tile
    d, r, n_s = plan[0].size, plan[1].size, plan[7].size
    slots, rhs = small[: n_s * LANES], small[n_s * LANES : (n_s + r) * LANES]
    gather(q, 0, tile)
    largest = np.inf
    for _ in range(_PATIENCE):
        pose_states(tree[0], tree[1], tree[2], tree[4], tile, state)
        closure_tile(state, loops, equations, linear, tile, f, entries, work)
        factorise(plan, entries, slots)
        if largest < _ARRIVED:
            break
        for i in range(r):
            for k in range(LANES):
                rhs[i * LANES + k] = -f[plan[2][i] * LANES + k]
        substitute(plan[5], slots, rhs)
        clear(step)
        largest = 0.0
        for i in range(r):
            copy(rhs, i * LANES, step, plan[1][i] * LANES, LANES)
            for k in range(LANES):
                largest = max(largest, abs(rhs[i * LANES + k]))
        move_tile(tree, step, tile)
    _spread(tile, q)
    tangents(plan, entries, slots, small[(n_s + r) * LANES :], basis)
    for a in range(d):
        for k in range(LANES):
            along[a * LANES + k] = dq[k, plan[0][a]]
    clear(step)
    add_along(basis, d, along, step)
    _spread(step, dq)


@inner
def _spread(tile, out):
    for lane in range(LANES):
        for i in range(out.shape[1]):
            out[lane, i] = tile[i * LANES + lane]


settle = for_one_sample(settle_tile)
position_rates = for_one_sample(position_rates_tile)
unit = for_one_sample(unit_tile)
solve_positive = for_one_sample(cholesky_solve)
GONE = -1.0  # returned instead of a condition: not finite, or without a solution


@inner
def _solved(terms, M, left):
    """Solve M x = left in place; declared columns may make M asymmetric."""
    if terms is None:
        solve_positive(M.copy().reshape(M.size), left.size, left)
    else:
        left[:] = np.linalg.solve(M, left)


@inner
def _wearing(terms, loads, q, dq, drift, out):
    """Declared columns that are friction, where the load must be known without them, into `out` (v,)."""
    if terms is not None and loads is not None:
        term_efforts(terms, q, dq, drift, True, out)


@inner
def _accelerated(robot, state, parts, tau, ddq):
    """Accelerations under motor efforts and friction, into ddq; returns power, and whether they exist."""
    N, drift, M, h = parts
    C, D, dq = robot.C, robot.friction.D, state.dq[0]
    s = D @ dq
    rub = np.empty(s.size)
    resisting(robot.friction, s, state.z, rub)
    side, wearing = C.T @ tau - D.T @ rub, np.zeros(dq.size)
    _wearing(robot.terms, robot.loads, state.q[0], dq, drift, wearing)
    side -= wearing
    solvable = load_friction(robot.friction, robot.loads, C, N, tau, side, s, rub)
    side += wearing
    power = np.dot(tau, C @ dq) - np.dot(rub, s)
    left = N.T @ side - h
    solvable = solvable and bool(np.all(np.isfinite(M))) and bool(np.all(np.isfinite(left)))
    if solvable:
        _solved(robot.terms, M, left)
        ddq[:] = drift + N @ left
    return power, solvable and bool(np.all(np.isfinite(ddq)))


@inner
def _recorded(robot, memory, state, parts, tau, out, at):
    """Fill row `at` of the samples; returns whether the accelerations exist.

    At a tick the recorded efforts are the mean of those before and after it.
    """
    counters, held, recorded = memory.counters, memory.held, out.tau[at]
    recorded[:] = tau
    if counters[LAST_TICK] == counters[STEPS]:
        recorded[:] = 0.5 * (held[NOW] + held[BEFORE])
    out.q[at], out.dq[at], out.work[at] = state.q[0], state.dq[0], state.work[0]
    _, fine = _accelerated(robot, state, parts, recorded, out.ddq[at])
    return fine


@kernel
def run_steps(robot, driving, state, steps, out):
    """Integrate the steps start .. stop, and fill a row of `out` at every sample; both ends are sampled.

    Arguments: `Robot`, `Driving`, `State`, `Steps` and `Samples` of `layout`.

    Returns the last step, and the condition there: GONE, or above `most` if other coordinates are needed.
    All stages use the same lines: a function called from two places is compiled twice.
    """
    linkage, friction, h, stop = robot.linkage, robot.friction, steps.h, steps.stop
    model, control, memory, wanted, extra, noise = driving
    q, dq, z, work = state
    closure, plan = linkage
    tree, D, n_v = closure[0], friction.D, dq.shape[1]
    space = room(closure, plan, steps.n_bodies, q.shape[1], n_v)
    counters, hold = memory.counters, steps.per_tick > 0
    moving, sum_q, sum_v = np.zeros(q.shape), np.zeros(q.shape), np.zeros(dq.shape)
    ddq, tau = np.empty(n_v), np.zeros(robot.C.shape[0])
    for step in range(steps.start, stop + 1):
        if hold and counters[STEPS] % steps.per_tick == 0 and counters[LAST_TICK] != counters[STEPS]:
            new = noise[counters[STEPS] // steps.per_tick]
            tick(linkage, model, control, memory, wanted[2 * step], extra[2 * step], new, space)
        q0, dq0, z0, begun = q.copy(), dq.copy(), z.copy(), D @ dq[0]
        done, condition = 0.0, 0.0
        sum_q[:], sum_v[:] = 0.0, 0.0
        for stage in range(4):
            part = 0.0 if stage == 0 else 1.0 if stage == 3 else 0.5
            weight = 1.0 if stage == 0 or stage == 3 else 2.0
            if stage > 0:
                q[:] = q0 + part * h * moving
                dq[0] = dq0[0] + part * h * ddq
                unit(tree, q, space.tile)
                bending(friction, z0, 0.5 * (begun + D @ dq[0]), part * h, z)
            if hold:
                tau = memory.held[NOW].copy()
            else:
                row = 2 * step + int(2.0 * part)
                tau = feedback(linkage, model, control, wanted[row], extra[row], q, dq, space)
            parts = equations(linkage, robot.masses, robot.terms, q, dq, space)
            size = np.sqrt(np.sum(parts[0] * parts[0]))
            condition = size if not size < steps.most else condition
            if stage == 0 and step % steps.per_sample == 0 and condition == 0.0:
                at = steps.row + step // steps.per_sample
                fine = _recorded(robot, memory, state, parts, tau, out, at)
                condition = condition if fine else GONE
            if condition != 0.0 or step == stop:
                break
            power, fine = _accelerated(robot, state, parts, tau, ddq)
            if not fine:
                condition = GONE
                break
            position_rates(tree, q, dq, moving)
            sum_q += weight * moving
            sum_v[0] += weight * ddq
            done += weight * power * h / 6.0
        if condition != 0.0:
            q[:], dq[:], z[:] = q0, dq0, z0
            return step, condition
        if step == stop:
            break
        q[:] = q0 + h / 6.0 * sum_q
        dq[:] = dq0 + h / 6.0 * sum_v
        unit(tree, q, space.tile)
        if plan[1].size:
            settle(closure, plan, q, dq, space)
        bending(friction, z0, 0.5 * (begun + D @ dq[0]), h, z)
        work[0] += done
        remember(control, memory, q, dq, h)
    return stop, 0.0
