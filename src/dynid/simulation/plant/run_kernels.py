"""Time integration: Runge-Kutta steps with friction and controller, and projection onto the loops.

M ddy + h = N^T (C^T tau - D^T resist),      ddq = N ddy + drift
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner, kernel
from dynid.dynamics.state_kernels import position_rates_tile, settle_tile, unit_tile
from dynid.kinematics.single_sample import alone
from dynid.kinematics.step_kernels import cholesky_solve
from dynid.simulation.plant.control_kernels import equations, feedback, remember, room, tick
from dynid.simulation.plant.drive_kernels import bending, load_friction, resisting
from dynid.simulation.plant.layout import BEFORE, LAST_TICK, NOW, STEPS
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
