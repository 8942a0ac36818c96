"""Declared extra columns at one state: postfix programs on a small stack, see `common.expression`.

Tables: first instruction of each term, then per instruction its code and argument; per term the coordinate it
acts on, its value, and whether it depends on a velocity (then it is friction, not load).
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner, kernel

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
