"""One sample of `Online`: filter, residual, and now and then an update of the state, all in place."""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating as kernel
from dynid.common.compiled import allocating_inner as inner
from dynid.common.compiled_arrays import view
from dynid.regressor.kernels import fill_rows


@kernel
def filtered(w, dt, old, new, x):
    """States of 1 / (1 + s/w)^3 after a time dt with an input that is linear in time; x: (3, m).

    p = (u - 3 u'/w, u', 0) follows such an input exactly, and x - p decays with exp(A dt), where
    exp(A dt) = exp(-w dt) (1 + N dt + N^2 dt^2 / 2), N = A + w: a matrix with N^3 = 0.
    """
    decay = np.exp(-w * dt)
    for j in range(new.size):
        slope = (new[j] - old[j]) / dt
        a, b, c = x[0, j] - (old[j] - 3.0 * slope / w), x[1, j] - slope, x[2, j]
        a1, b1, c1 = w * a + b, w * b + c, -(w**3) * a - 3.0 * w**2 * b - 2.0 * w * c
        a2, b2, c2 = w * a1 + b1, w * b1 + c1, -(w**3) * a1 - 3.0 * w**2 * b1 - 2.0 * w * c1
        half = 0.5 * dt * dt
        x[0, j] = decay * (a + dt * a1 + half * a2) + new[j] - 3.0 * slope / w
        x[1, j] = decay * (b + dt * b1 + half * b2) + slope
        x[2, j] = decay * (c + dt * c1 + half * c2)
        old[j] = new[j]


@kernel
def residuals(robot, layout, motion, q_filter, tau_filter, state, share, slow, entries, residual):
    """Effort minus model, load and drift, and the entries of W, all through the second filter.

    robot: arguments of `fill_rows`. layout: start of rows, coefficient in the model, whether it is a load of
    friction, state of the estimator (-1: none) of each entry. share: of the difference that a pole makes up
    for in this step; 1: begin. slow: poles (2, ..) of the entries of W, of efforts, velocities and
    accelerations, and the entries of now.
    """
    start, coefficient, loading, place = layout
    rows, efforts, rates, present = slow
    q, dq, ddq, load = motion[0], motion[1], motion[2], motion[5]
    for j in range(q.shape[1]):
        q[0, j], dq[0, j], ddq[0, j] = q_filter[0, j], q_filter[1, j], q_filter[2, j]
        _follow(efforts, j, tau_filter[0, j], share)
        _follow(rates[0], j, dq[0, j], share)
        _follow(rates[1], j, ddq[0, j], share)
    links, bodies, gravity, pairs, drives, given, combination, room = robot
    fill_rows(
        links,
        bodies,
        gravity,
        pairs,
        drives,
        given,
        motion,
        combination,
        room,
        0,
        present,
        room[0],
        start,
        view(room[0], 0, 0),
    )
    for row in range(residual.size):
        model, carried = 0.0, 0.0
        for e in range(start[row], start[row + 1] - 1):
            _follow(rows, e, present[e, 0], share)
            entries[e, 0] = rows[1, e]
            value = coefficient[e]
            if place[e] >= 0:
                value += state[place[e]]
            model += entries[e, 0] * value
            if loading[e]:
                carried += present[e, 0] * value
        residual[row] = efforts[1, row] - model
        if load.size > 0:
            load[0, row] = carried  # friction of the next sample: a load changes little in a millisecond


@inner
def _follow(poles, at, value, share):
    """Two poles in a row."""
    poles[0, at] += share * (value - poles[0, at])
    poles[1, at] += share * (poles[0, at] - poles[1, at])


@kernel
def updated(layout, entries, residual, R, x, P_xx, P_xc, P_cc, row, columns):
    """Kalman update with one row, parameters of the model considered: they stay as they are, and cost sigma.

    S = h P_xx h' + 2 h P_xc g' + g P_cc g' + R,   K = (P_xx h' + P_xc g') / S

    columns: (h, g, P_xx h' + P_xc g', P_cx h' + P_cc g'), working arrays. Gives the innovation variance.
    """
    start, place, base = layout
    h, g, a, b = columns
    h[:], g[:] = 0.0, 0.0
    for e in range(start[row], start[row + 1] - 1):
        if place[e] >= 0:
            h[place[e]] += entries[e, 0]
        if base[e] >= 0:
            g[base[e]] += entries[e, 0]
    nx, nc = h.size, g.size
    S = R
    for i in range(nx):
        s = 0.0
        for k in range(nx):
            s += P_xx[i, k] * h[k]
        for k in range(nc):
            s += P_xc[i, k] * g[k]
        a[i] = s
    for k in range(nc):
        s = 0.0
        for i in range(nx):
            s += P_xc[i, k] * h[i]
        for i in range(nc):
            s += P_cc[k, i] * g[i]
        b[k] = s
    for i in range(nx):
        S += h[i] * a[i]
    for k in range(nc):
        S += g[k] * b[k]
    move = residual[row] / S
    for i in range(nx):
        x[i] += a[i] * move
        for k in range(nx):
            P_xx[i, k] -= a[i] * a[k] / S
        for k in range(nc):
            P_xc[i, k] -= a[i] * b[k] / S
    for other in range(row + 1, residual.size):  # what the later rows still have to explain
        for e in range(start[other], start[other + 1] - 1):
            if place[e] >= 0:
                residual[other] -= entries[e, 0] * a[place[e]] * move
    return S


@kernel
def remembered(innovation, row, weight, past, memory):
    """Autocovariance of the innovations of a row, with forgetting; gives their variance at low frequency.

    past: (rows, lags), the last innovations. memory: (rows, lags), autocovariances from lag 0.
    """
    lags = memory.shape[1]
    for k in range(lags - 1, 0, -1):
        past[row, k] = past[row, k - 1]
    past[row, 0] = innovation
    for k in range(lags):
        memory[row, k] += weight * (innovation * past[row, k] - memory[row, k])
    total = memory[row, 0]
    for k in range(1, lags):
        total += 2.0 * (1.0 - k / lags) * memory[row, k]
    return max(total, memory[row, 0])
