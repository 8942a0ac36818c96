"""Time integration: Runge-Kutta steps with friction and controller, and projection onto the loops.

A step is divided where a joint with dry friction comes to rest, see `stick_kernels`.

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
from dynid.simulation.plant.layout import BEFORE, LAST_TICK, NOW, STEPS, State
from dynid.simulation.plant.stick_kernels import at_rest, come_to_rest, holding, mobility, part_to_rest, signs

_ARRIVED = 3e-8  # the error after a step of this size is its square: below rounding
_PATIENCE = 8
_HELD = 1e-9  # change of the friction that holds owners, where it depends on the load
_ROUNDS = 100  # of friction that holds and load friction: each at most Fl as far off as the one before
_TRIES = 60  # parts of one step
_WHOLE = 1.0 - 1e-9


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
def _accelerated(robot, state, parts, tau, h, start, ddq):
    """Accelerations under motor efforts and friction, into ddq; returns power, and whether they exist.

    start: owners of dry friction that stick may start to slip. h: of a whole step.
    """
    N, drift, M, _ = parts
    friction, C, D, dq = robot.friction, robot.C, robot.friction.D, state.dq[0]
    s = D @ dq
    rub, wearing, most = np.empty(s.size), np.zeros(dq.size), np.zeros(s.size)
    _wearing(robot.terms, robot.loads, state.q[0], dq, drift, wearing)
    sign, resting = signs(friction, state.slip, s), at_rest(friction, state.slip)
    if not np.all(np.isfinite(M)):
        return 0.0, False
    moved, G = np.zeros((M.shape[0], s.size)), np.zeros((s.size, s.size))
    if resting.size:
        moved, G = mobility(D, N, M)
    f, slip, power = np.zeros(s.size), state.slip.copy(), 0.0
    # What holds an owner changes the load friction of others, and their friction what holds it.
    for _ in range(_ROUNDS):
        resisting(friction, s, sign, state.z, rub)
        held = D.T @ f
        side = C.T @ tau - D.T @ rub - wearing - held
        solvable = load_friction(friction, robot.loads, C, N, tau, side, sign, rub, most)
        side += wearing + held
        power = np.dot(tau, C @ dq) - np.dot(rub, s)
        solvable = solvable and _moved(robot, parts, side, ddq)
        change = 0.0
        if resting.size and solvable:
            limits = friction.breakaway + most
            change = holding(resting, G, D @ ddq + s / h, limits, start, slip, f)
            ddq -= N @ (moved @ f)
        if not solvable or robot.loads is None or change <= _HELD:
            break
    state.slip[:] = slip
    return power, solvable and bool(np.all(np.isfinite(ddq)))


@inner
def _moved(robot, parts, side, ddq):
    """Accelerations under the efforts `side` (v,), into ddq; returns whether they exist."""
    N, drift, M, h = parts
    left = N.T @ side - h
    if not bool(np.all(np.isfinite(left))):
        return False
    _solved(robot.terms, M, left)
    ddq[:] = drift + N @ left
    return True


@inner
def _copied(state):
    q, dq, z, slip, work = state
    return State(q.copy(), dq.copy(), z.copy(), slip.copy(), work.copy())


@inner
def _recorded(memory, state, tau, out, at):
    """Fill row `at` of the samples but for accelerations; returns the recorded efforts (a,).

    At a tick they are the mean of those before and after it.
    """
    counters, held = memory.counters, memory.held
    out.tau[at] = tau
    if counters[LAST_TICK] == counters[STEPS]:
        out.tau[at] = 0.5 * (held[NOW] + held[BEFORE])
    out.q[at], out.dq[at], out.work[at] = state.q[0], state.dq[0], state.work[0]
    return out.tau[at]


@inner
def _between(rows, step, share):
    """Row of the time after a share of a step, from both ends and the middle of the step."""
    row, x = 2 * step, 2.0 * share
    if x == 0.0:
        return rows[row]
    first, middle, last = 0.5 * (x - 1.0) * (x - 2.0), x * (2.0 - x), 0.5 * x * (x - 1.0)
    return first * rows[row] + middle * rows[row + 1] + last * rows[row + 2]


@inner
def _part(robot, driving, state, steps, step, done, share, start, out, space):
    """Four stages over a share of a step, of which the share `done` has passed; `start`: see `_accelerated`.

    Returns velocities and accelerations of the friction's owners at its start, work, and a condition as
    `run_steps` does. All stages use the same lines, and so do samples (stage -1, under the recorded efforts):
    a function called from two places is compiled twice.
    """
    linkage, friction, h = robot.linkage, robot.friction, share * steps.h
    model, control, memory, wanted, extra, _ = driving
    q, dq, z = state.q, state.dq, state.z
    closure, plan = linkage
    q0, dq0, z0, s = q.copy(), dq.copy(), z.copy(), friction.D @ dq[0]
    moving, sum_q, sum_v = np.zeros(q.shape), np.zeros(q.shape), np.zeros(dq.shape)
    ddq, a, tau = np.empty(dq.shape[1]), np.zeros(s.size), np.zeros(robot.C.shape[0])
    work = condition = 0.0
    sampled = start and done == 0.0 and step % steps.per_sample == 0
    for stage in range(-1 if sampled else 0, 4):
        part = 0.0 if stage <= 0 else 1.0 if stage == 3 else 0.5
        weight = 1.0 if stage == 0 or stage == 3 else 2.0
        if stage > 0:
            q[:] = q0 + part * h * moving
            dq[0] = dq0[0] + part * h * ddq
            unit(closure[0], q, space.tile)
            bending(friction, z0, 0.5 * (s + friction.D @ dq[0]), part * h, z)
        if stage != 0 or not sampled:
            if steps.per_tick > 0:
                tau = memory.held[NOW].copy()
            else:
                at = done + part * share
                asked, more = _between(wanted, step, at), _between(extra, step, at)
                tau = feedback(linkage, model, control, asked, more, q, dq, space)
            parts = equations(linkage, robot.masses, robot.terms, q, dq, space)
            size = np.sqrt(np.sum(parts[0] * parts[0]))
            condition = size if not size < steps.most else condition
        if condition != 0.0 or (step == steps.stop and stage == 0):
            return s, a, work, condition
        samples, row = stage < 0, steps.row + step // steps.per_sample
        pushed = _recorded(memory, state, tau, out, row) if samples else tau
        given = _copied(state) if samples else state
        power, fine = _accelerated(robot, given, parts, pushed, steps.h, start and stage <= 0, ddq)
        if not fine:
            return s, a, work, GONE
        if samples:
            out.ddq[row] = ddq
            continue
        if stage == 0:
            a[:] = friction.D @ ddq
        position_rates(closure[0], q, dq, moving)
        sum_q += weight * moving
        sum_v[0] += weight * ddq
        work += weight * power * h / 6.0
    q[:] = q0 + h / 6.0 * sum_q
    dq[:] = dq0 + h / 6.0 * sum_v
    unit(closure[0], q, space.tile)
    if plan[1].size:
        settle(closure, plan, q, dq, space)
    bending(friction, z0, 0.5 * (s + friction.D @ dq[0]), h, z)
    return s, a, work, 0.0


@kernel
def run_steps(robot, driving, state, steps, out):
    """Integrate the steps start .. stop, and fill a row of `out` at every sample; both ends are sampled.

    Arguments: `Robot`, `Driving`, `State`, `Steps` and `Samples` of `layout`.

    Returns the last step, and the condition there: GONE, or above `most` if other coordinates are needed.
    """
    linkage, friction, slip = robot.linkage, robot.friction, state.slip
    model, control, memory, wanted, extra, noise = driving
    counters, q, dq = memory.counters, state.q, state.dq
    space = room(linkage.closure, linkage.plan, steps.n_bodies, q.shape[1], dq.shape[1])
    for step in range(steps.start, steps.stop + 1):
        if (
            steps.per_tick > 0
            and counters[STEPS] % steps.per_tick == 0
            and counters[LAST_TICK] != counters[STEPS]
        ):
            new = noise[counters[STEPS] // steps.per_tick]
            tick(linkage, model, control, memory, wanted[2 * step], extra[2 * step], new, space)
        before = _copied(state)
        begun, done, share, start, tries = before, 0.0, 1.0, True, 0
        while True:
            s, a, work, condition = _part(robot, driving, state, steps, step, done, share, start, out, space)
            if condition != 0.0:
                q[:], dq[:], state.z[:], slip[:], state.work[:] = before
                return step, condition
            if step == steps.stop:
                return step, 0.0
            tries, ends = tries + 1, friction.D @ dq[0]
            within = part_to_rest(friction, slip, s, a, ends, share * steps.h, steps.h)
            if within < 1.0 and tries < _TRIES:
                q[:], dq[:], state.z[:], start = begun.q, begun.dq, begun.z, False
                share = share * within if within > 0.0 else share
                continue
            come_to_rest(friction, slip, s, a, ends, steps.h, tries == _TRIES)
            state.work[0] += work
            done += share
            if done > _WHOLE:
                break
            begun, share, start = _copied(state), 1.0 - done, True
        remember(control, memory, q, dq, steps.h)
    return steps.stop, 0.0
