"""Time integration: Runge-Kutta steps with friction and controller, and projection onto the loops.

A step is divided where a joint with dry friction comes to rest, see `stick_kernels`.

M ddy + h = N^T (C^T tau - D^T resist),      ddq = N ddy + drift

Projection onto the loops: dependent coordinates take Newton steps until the loops are closed; independent
ones are fixed, and their velocities give the others, dq = N dy.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating as kernel
from dynid.common.compiled import allocating_inner as inner
from dynid.common.compiled import for_one_sample
from dynid.kinematics.closure_kernels import closure_tile, gather
from dynid.kinematics.kernels import pose_states
from dynid.kinematics.newton_kernels import move_tile, normalise
from dynid.kinematics.step_kernels import (
    add_along,
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
from dynid.simulation.plant.small_kernels import add, add_back, add_times, dot, largest, solve
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
        pose_states(tree[0], tree[1], tree[2], tree[4], tile, state, work)
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
GONE = -1.0  # returned instead of a condition: not finite, or without a solution


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
    for a in range(M.shape[0]):
        if not np.isfinite(largest(M[a])):
            return 0.0, False
    o, s, speeds = D.shape[0], np.zeros(D.shape[0]), np.zeros(tau.size)
    add_times(1.0, D, dq, s)
    add_times(1.0, C, dq, speeds)
    rub, wearing, most, f = np.empty(o), np.zeros(dq.size), np.zeros(o), np.zeros(o)
    _wearing(robot.terms, robot.loads, state.q[0], dq, drift, wearing)
    sign, resting, slip = signs(friction, state.slip, s), at_rest(friction, state.slip), state.slip.copy()
    moved, G = np.zeros((M.shape[0], o)), np.zeros((o, o))
    if resting.size:
        mobility(D, N, M, moved, G)
    side, aside, power = np.empty(dq.size), np.empty(dq.size), 0.0
    # What holds an owner changes the load friction of others, and their friction what holds it.
    for _ in range(_ROUNDS):
        resisting(friction, s, sign, state.z, rub)
        copy(wearing, 0, aside, 0, aside.size)
        add_back(1.0, D, f, aside)
        clear(side)
        add_back(1.0, C, tau, side)
        add_back(-1.0, D, rub, side)
        add(-1.0, aside, side)
        solvable = load_friction(friction, robot.loads, C, N, tau, side, sign, rub, most)
        add(1.0, aside, side)
        power = dot(tau, speeds) - dot(rub, s)
        solvable = solvable and _moved(parts, side, ddq)
        change = 0.0
        if resting.size and solvable:
            change = _held_at_rest(friction, resting, (moved, G, N), (s, most, h), start, slip, f, ddq)
        if not solvable or robot.loads is None or change <= _HELD:
            break
    copy(slip, 0, state.slip, 0, slip.size)
    return power, solvable and np.isfinite(largest(ddq))


@inner
def _held_at_rest(friction, resting, mobile, moving, start, slip, f, ddq):
    """Friction f of the owners that stick, see `holding`; ddq changes by it."""
    moved, G, N = mobile
    s, most, h = moving
    limits, accelerations, push = most.copy(), np.zeros(s.size), np.zeros(moved.shape[0])
    add(1.0, friction.breakaway, limits)
    add_times(1.0, friction.D, ddq, accelerations)
    add(1.0 / h, s, accelerations)
    change = holding(resting, G, accelerations, limits, start, slip, f)
    add_times(1.0, moved, f, push)
    add_times(-1.0, N, push, ddq)
    return change


@inner
def _moved(parts, side, ddq):
    """Accelerations under the efforts `side` (v,), into ddq; returns whether they exist."""
    N, drift, M, h = parts
    A, left = M.copy(), np.empty((h.size, 1))
    for a in range(h.size):
        left[a, 0] = -h[a]
    for v in range(side.size):
        for a in range(h.size):
            left[a, 0] += N[v, a] * side[v]
    for a in range(h.size):
        if not np.isfinite(left[a, 0]):
            return False
    solve(A, left)
    for v in range(side.size):
        ddq[v] = drift[v]
        for a in range(h.size):
            ddq[v] += N[v, a] * left[a, 0]
    return True


@inner
def _copied(state):
    q, dq, z, slip, work = state
    return State(q.copy(), dq.copy(), z.copy(), slip.copy(), work.copy())


@inner
def _restored(stored, state):
    """Go back to a stored pose, with its velocities and deflections."""
    copy(stored.q[0], 0, state.q[0], 0, state.q.size)
    copy(stored.dq[0], 0, state.dq[0], 0, state.dq.size)
    copy(stored.z, 0, state.z, 0, state.z.size)


@inner
def _recorded(memory, state, tau, out, at):
    """Fill row `at` of the samples but for accelerations; returns the recorded efforts (a,).

    At a tick they are the mean of those before and after it.
    """
    counters, held, row = memory.counters, memory.held, out.tau[at]
    for a in range(tau.size):
        both = 0.5 * (held[NOW, a] + held[BEFORE, a])
        row[a] = both if counters[LAST_TICK] == counters[STEPS] else tau[a]
    copy(state.q[0], 0, out.q[at], 0, state.q.size)
    copy(state.dq[0], 0, out.dq[at], 0, state.dq.size)
    out.work[at] = state.work[0]
    return row


@inner
def _between(rows, step, share):
    """Row of the time after a share of a step, from both ends and the middle of the step."""
    x, out = 2.0 * share, rows[2 * step].copy()
    if x != 0.0:
        first, middle, last = 0.5 * (x - 1.0) * (x - 2.0), x * (2.0 - x), 0.5 * x * (x - 1.0)
        for i in range(out.size):
            ends = first * out[i] + last * rows[2 * step + 2, i]
            out[i] = ends + middle * rows[2 * step + 1, i]
    return out


@inner
def _size(N):
    """Root of the sum of squares."""
    total = 0.0
    for i in range(N.shape[0]):
        total += dot(N[i], N[i])
    return np.sqrt(total)


@inner
def _moved_by(start, factor, rates, out):
    """Start + factor rates, into a row."""
    copy(start, 0, out, 0, out.size)
    add(factor, rates, out)


@inner
def _part(robot, driving, state, steps, step, done, share, start, out, space):
    """Four stages over a share of a step, of which the share `done` has passed; `start`: see `_accelerated`.

    Returns velocities and accelerations of the friction's owners at its start, work, and a condition as
    `run_steps` does. All stages use the same lines, and so do samples (stage -1, under the recorded efforts):
    a function called from two places is compiled twice.
    """
    linkage, friction, h = robot.linkage, robot.friction, share * steps.h
    model, control, memory, wanted, extra, _ = driving
    q, dq, z = state.q[0], state.dq[0], state.z
    closure, plan = linkage
    n_q, n_v, o = q.size, dq.size, friction.D.shape[0]
    q0, dq0, z0, s, mean = q.copy(), dq.copy(), z.copy(), np.zeros(o), np.empty(o)
    add_times(1.0, friction.D, dq, s)
    moving, sum_q, sum_v = np.zeros((1, n_q)), np.zeros(n_q), np.zeros(n_v)
    ddq, a, tau = np.empty(n_v), np.zeros(o), np.zeros(robot.C.shape[0])
    work = condition = 0.0
    sampled = start and done == 0.0 and step % steps.per_sample == 0
    for stage in range(-1 if sampled else 0, 5):
        part = 0.0 if stage <= 0 else 1.0 if stage >= 3 else 0.5
        weight = 1.0 if stage == 0 or stage == 3 else 2.0
        if stage > 0:
            _moved_by(q0, h / 6.0 if stage == 4 else part * h, sum_q if stage == 4 else moving[0], q)
            _moved_by(dq0, h / 6.0 if stage == 4 else part * h, sum_v if stage == 4 else ddq, dq)
            unit(closure[0], state.q, space.tile)
            if stage == 4 and plan[1].size:
                settle(closure, plan, state.q, state.dq, space)
            clear(mean)
            add_times(0.5, friction.D, dq, mean)
            add(0.5, s, mean)
            bending(friction, z0, mean, part * h, z)
        if stage == 4:
            break
        if stage != 0 or not sampled:
            if steps.per_tick > 0:
                copy(memory.held[NOW], 0, tau, 0, tau.size)
            else:
                at = done + part * share
                asked, more = _between(wanted, step, at), _between(extra, step, at)
                tau = feedback(linkage, model, control, asked, more, state.q, state.dq, space)
            parts = equations(linkage, robot.masses, robot.terms, state.q, state.dq, space)
            size = _size(parts[0])
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
            copy(ddq, 0, out.ddq[row], 0, n_v)
            continue
        if stage == 0:
            add_times(1.0, friction.D, ddq, a)
        position_rates(closure[0], state.q, state.dq, moving)
        add(weight, moving[0], sum_q)
        add(weight, ddq, sum_v)
        work += weight * power * h / 6.0
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
    ends = np.empty(friction.D.shape[0])
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
                _restored(before, state)
                copy(before.slip, 0, slip, 0, slip.size)
                state.work[0] = before.work[0]
                return step, condition
            if step == steps.stop:
                return step, 0.0
            tries += 1
            clear(ends)
            add_times(1.0, friction.D, dq[0], ends)
            within = part_to_rest(friction, slip, s, a, ends, share * steps.h, steps.h)
            if within < 1.0 and tries < _TRIES:
                _restored(begun, state)
                start = False
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
