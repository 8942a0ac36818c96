"""Time integration: Runge-Kutta steps with friction and controller, and projection onto the loops.

M ddy + h = N^T (C^T tau - D^T resist),      ddq = N ddy + drift
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner, kernel
from dynid.dynamics.state_kernels import position_rates_tile, settle_tile, unit_tile
from dynid.kinematics.single_sample import alone
from dynid.kinematics.step_kernels import cholesky_solve
from dynid.simulation.plant.control_kernels import add_terms, feedback, reduced, remember, room, tick, whole
from dynid.simulation.plant.drive_kernels import bending, load_friction, resisting
from dynid.simulation.plant.term_kernels import term_efforts

settle = alone(settle_tile)
position_rates = alone(position_rates_tile)
unit = alone(unit_tile)
solve_positive = alone(cholesky_solve)
GONE = -1.0  # returned instead of a condition: not finite, or without a solution


@inner
def _solved(terms, M, left):
    """Solve M x = left in place; declared columns may make M asymmetric."""
    if terms is None:
        solve_positive(M.copy().reshape(M.size), left.size, left)
    else:
        left[:] = np.linalg.solve(M, left)


@inner
def _accelerated(C, terms, drives, loads, tau, q, dq, z, parts, ddq):
    """Accelerations under motor efforts and friction, into ddq; returns power, and whether they exist."""
    N, drift, M, h = parts
    D = drives[0]
    s = D @ dq[0]
    rub = np.empty(s.size)
    resisting(drives, s, z, rub)
    side, wearing = C.T @ tau - D.T @ rub, np.zeros(dq.shape[1])
    if terms is not None and loads is not None:
        term_efforts(terms, q[0], dq[0], drift, True, wearing)
    side -= wearing
    found = load_friction(drives, loads, C, N, tau, side, s, rub)
    side += wearing
    power = np.dot(tau, C @ dq[0]) - np.dot(rub, s)
    left = N.T @ side - h
    found = found and bool(np.all(np.isfinite(M))) and bool(np.all(np.isfinite(left)))
    if found:
        _solved(terms, M, left)
        ddq[:] = drift + N @ left
    return power, found and bool(np.all(np.isfinite(ddq)))


@kernel
def run_steps(
    robot, terms, drives, loads, believed, control, memory, wanted, extra, noise, state, counts, h, most, out
):
    """Integrate steps start .. stop, and fill a row of `out` at every sample; both ends are sampled.

    robot: closure, plan, bodies, gravity, inertia, rotors, C. wanted, extra: of the controller at every half
    step from step 0 on. noise: of the encoders at every tick of the run. state: q (1, n_q), dq (1, v),
    z (e,), work (1,). counts: start, stop, steps per sample, steps per tick (0: a controller that knows the
    state at any time), row of step 0, maximum number of bodies. most: size of N above which the independent
    coordinates have become singular. out: q, dq, ddq, tau and work.

    Returns the last step, and the condition there: GONE, or above `most` if other coordinates are needed.
    All stages use the same lines: a function called from two places is compiled twice.
    """
    closure, plan, bodies, gravity, inertia, rotors, C = robot
    q, dq, z, work = state
    stop, per_sample, per_tick = counts[1], counts[2], counts[3]
    tree, D, d, n_v = closure[0], drives[0], plan[0].size, dq.shape[1]
    space = room(closure, plan, counts[5], q.shape[1], n_v)
    held, counters, hold = memory[5], memory[6], per_tick > 0
    moving, sum_q, sum_v = np.zeros(q.shape), np.zeros(q.shape), np.zeros(dq.shape)
    ddq, tau, told = np.empty(n_v), np.zeros(C.shape[0]), np.zeros(C.shape[0])
    for step in range(counts[0], stop + 1):
        if hold and counters[0] % per_tick == 0 and counters[1] != counters[0]:
            new = noise[counters[0] // per_tick]
            tick(closure, plan, believed, control, memory, wanted[2 * step], extra[2 * step], new, space)
        q0, dq0, z0, begun = q.copy(), dq.copy(), z.copy(), D @ dq[0]
        done, condition = 0.0, 0.0
        sum_q[:], sum_v[:] = 0.0, 0.0
        for stage in range(4):
            part = 0.0 if stage == 0 else 1.0 if stage == 3 else 0.5
            weight = 1.0 if stage == 0 or stage == 3 else 2.0
            if stage > 0:
                q[:] = q0 + part * h * moving
                dq[0] = dq0[0] + part * h * ddq
                unit(tree, q, space[11])
                bending(drives, z0, 0.5 * (begun + D @ dq[0]), part * h, z)
            if hold:
                tau = held[0].copy()
            else:
                row = 2 * step + int(2.0 * part)
                tau = feedback(closure, plan, believed, control, wanted[row], extra[row], q, dq, space)
            reduced(closure, plan, bodies, gravity, inertia, rotors, q, dq, space)
            N, drift, M, left = whole(space, d, n_v)
            add_terms(terms, q[0], dq[0], N, drift, M, left)
            parts = (N, drift, M, left)
            size = np.sqrt(np.sum(N * N))
            condition = size if not size < most else condition
            if stage == 0 and step % per_sample == 0 and condition == 0.0:
                at = counts[4] + step // per_sample
                told[:] = tau
                if hold and counters[1] == counters[0]:
                    told[:] = 0.5 * (held[0] + held[1])
                out[0][at], out[1][at], out[3][at], out[4][at] = q[0], dq[0], told, work[0]
                _, fine = _accelerated(C, terms, drives, loads, told, q, dq, z, parts, out[2][at])
                condition = condition if fine else GONE
            if condition != 0.0 or step == stop:
                break
            power, fine = _accelerated(C, terms, drives, loads, tau, q, dq, z, parts, ddq)
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
        unit(tree, q, space[11])
        if plan[1].size:
            settle(closure, plan, q, dq, space)
        bending(drives, z0, 0.5 * (begun + D @ dq[0]), h, z)
        work[0] += done
        remember(control, memory, q, dq, h)
    return stop, 0.0
