"""Friction of a plant at one state: drive terms, additional laws, and load-dependent friction.

`friction` is the tables `Friction`. Loads are E tau_l, rows E (m, a); None without load-dependent friction.

Load friction is implicit. With u = N^T w the generalised forces of the motion, and K = (J^T)^+:

    u = N^T side - sum_o (D_o N)^T f_o,     f_o = Fl_o step_o |E_o (K u + (1 - K J^T) tau)|

`side` contains all other efforts. For |Fl| < 1 the right side is a contraction, so the iteration converges
to the unique solution.

Declared extra columns at one state: postfix programs on a small stack, see `common.expression`.

Tables: first instruction of each term, then per instruction its code and argument; per term the coordinate it
acts on, its value, and whether it depends on a velocity (then it is friction, not load).
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating as kernel
from dynid.common.compiled import allocating_inner as inner
from dynid.excitation.friction_kernels import bent, rubbed
from dynid.regressor.drive_kernels import compiled_column

_PATIENCE = 400
_STANDS = 1e-14


@kernel
def resisting(friction, s, sign, z, out):
    """Efforts against the motion at the owners' velocities s (o,), without load friction.

    sign: Of s; 0 for owners that stick, and smoothed where an engine has no set-valued friction.
    """
    terms, laws, bristles = friction.terms, friction.laws, friction.bristles
    m = terms.shape[0]
    for o in range(s.size):
        if o >= m:
            out[o] = rubbed(laws[o - m], bristles[o - m], s[o], sign[o], z[o - m])
            continue
        signs = np.sign(s[o]), sign[o], 0.5 * (1.0 + sign[o]), 0.5 * (sign[o] - 1.0)
        out[o] = 0.0
        for number in range(terms.shape[1]):
            if terms[o, number] != 0.0:
                column = compiled_column(number, s[o], 0.0, signs, 0.0, friction.speeds[o])
                out[o] += terms[o, number] * column


@inner
def bending(friction, z, s, h, out):
    """Bristle deflections a time h later at the owners' velocities s."""
    m = friction.terms.shape[0]
    for e in range(z.size):
        out[e] = bent(friction.laws[e], friction.bristles[e], z[e], s[m + e], h)


@kernel
def load_friction(friction, E, C, N, tau, side, sign, out, most):
    """Add load friction to the owners' efforts `out` (o,), and subtract it from the efforts `side` (v,).

    N: tangent directions (v, d). tau: of the motors (a,). sign: as for `resisting`. most: largest load
    friction (o,), that of a full sign. Returns whether the iteration converged.
    """
    if E is None:
        return True
    D, shares = friction.D, friction.shares
    loaded = np.flatnonzero(shares)
    J = C @ N
    K = np.linalg.pinv(np.ascontiguousarray(J.T))
    strain = tau - K @ (J.T @ tau)
    along, gain = D @ N, np.empty(loaded.size)
    for i in range(loaded.size):
        gain[i] = shares[loaded[i]] * sign[loaded[i]]
    free = N.T @ side
    f, u = np.zeros(loaded.size), free.copy()
    for _ in range(_PATIENCE):
        load = K @ u + strain
        change = largest = 0.0
        u[:] = free
        for i in range(loaded.size):
            o = loaded[i]
            felt = abs(np.dot(E[o], load))
            value, most[o] = gain[i] * felt, shares[o] * felt
            change, largest = max(change, abs(value - f[i])), max(largest, abs(value))
            f[i] = value
            u -= along[o] * value
        if change <= _STANDS * largest:
            break
    for i in range(loaded.size):
        out[loaded[i]] += f[i]
        side -= D[loaded[i]] * f[i]
    return change <= 1e-9 * largest


NUMBER, POSITION, VELOCITY, ACCELERATION, NEGATIVE, ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER = range(10)
SIN, COS, TAN, ATAN2, SQRT, EXP, ABS, SIGN = range(10, 18)
_DEEPEST = 64


@inner
def term_efforts(terms, q, dq, ddq, rubbing, out):
    """Add the efforts of the terms to `out` (v,); rubbing: only velocity-dependent ones."""
    first, code, argument, row, value, reads_velocity = terms
    stack = np.empty(_DEEPEST)
    for t in range(row.size):
        if value[t] != 0.0 and (reads_velocity[t] or not rubbing):
            out[row[t]] += value[t] * _run(code, argument, first[t], first[t + 1], q, dq, ddq, stack)


@inner
def _run(code, argument, start, stop, q, dq, ddq, stack):
    top = 0
    for i in range(start, stop):
        c = code[i]
        if c <= ACCELERATION:
            at = int(argument[i])
            if c == NUMBER:
                stack[top] = argument[i]
            elif c == POSITION:
                stack[top] = q[at]
            elif c == VELOCITY:
                stack[top] = dq[at]
            else:
                stack[top] = ddq[at]
            top += 1
        elif c in (ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, ATAN2):
            top -= 1
            stack[top - 1] = _both(c, stack[top - 1], stack[top])
        else:
            stack[top - 1] = _one(c, stack[top - 1])
    return stack[0]


@inner
def _both(c, a, b):
    if c == ADD:
        return a + b
    if c == SUBTRACT:
        return a - b
    if c == MULTIPLY:
        return a * b
    if c == DIVIDE:
        return a / b
    if c == POWER:
        return a**b
    return np.arctan2(a, b)


@inner
def _one(c, a):
    if c == NEGATIVE:
        return -a
    if c == SIN:
        return np.sin(a)
    if c == COS:
        return np.cos(a)
    if c == TAN:
        return np.tan(a)
    if c == SQRT:
        return np.sqrt(a)
    if c == EXP:
        return np.exp(a)
    if c == ABS:
        return abs(a)
    return np.sign(a)


@kernel
def declared(terms, q, dq, rubbing, out):
    """Efforts (v,) of terms without acceleration, for engines outside the kernels."""
    term_efforts(terms, q, dq, np.zeros(dq.size), rubbing, out)
