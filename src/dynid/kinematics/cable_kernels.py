"""Length of one cable over a swivel pulley, or through an eyelet: gradient and second derivative.

In the axes of the entry frame (z the swivel axis) the attachment is at x, y, z; in the plane of the
pulley at (rho, z), the pulley's centre at (radius, 0). The cable leaves the pulley after the angle psi:

    s^2 = (rho - radius)^2 + z^2 - radius^2,     L = radius psi + s
    dL = sin(psi) drho + cos(psi) dz,            dpsi = (cos(psi) drho - sin(psi) dz) / s

dL/dA is the unit vector from B to A. On the swivel axis (rho = 0) the swivel angle is undefined, and
inside the pulley (s^2 < 0) there is no cable: both give finite values here and are reported elsewhere.
All functions accept complex numbers that carry a derivative.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner

_LEAST = 1e-12  # of a squared length: below it, singular


@inner
def arctangent(y, x):
    """Angle of (x, y); the imaginary parts carry a first derivative."""
    b, a = y.real, x.real
    square = max(a * a + b * b, 1e-300)
    return np.arctan2(b, a) + (a * (y - b) - b * (x - a)) / square


@inner
def pulley_shape(radius, x, y, z):
    """Rho, s, psi, sin and cos of psi."""
    square = x * x + y * y
    if square.real < _LEAST * (square + z * z).real:
        square = square + _LEAST * (radius * radius + z * z)
    rho = np.sqrt(square)
    v = rho - radius
    whole = v * v + z * z
    free = whole - radius * radius
    if free.real < _LEAST * radius * radius:
        free = free - free.real + _LEAST * radius * radius
    s = np.sqrt(free)
    sine, cosine = radius * z + s * v, s * z - radius * v
    psi = arctangent(sine, cosine)
    if psi.real < -1e-9:
        psi = psi + 2.0 * np.pi
    size = np.sqrt(sine * sine + cosine * cosine)
    return rho, s, psi, sine / size, cosine / size


@inner
def cable_length(radius, x, y, z):
    """L and its gradient, in the axes of the entry frame."""
    if radius == 0.0:
        length = np.sqrt(x * x + y * y + z * z)
        return length, x / length, y / length, z / length
    rho, s, psi, sine, cosine = pulley_shape(radius, x, y, z)
    return radius * psi + s, sine * x / rho, sine * y / rho, cosine


@inner
def cable_acceleration(radius, x, y, z):
    """Second time derivative of L; x, y, z contain value, first and second derivative each."""
    flat = x[1] * x[1] + y[1] * y[1]
    if radius == 0.0:
        length = np.sqrt(x[0] * x[0] + y[0] * y[0] + z[0] * z[0])
        rate = (x[0] * x[1] + y[0] * y[1] + z[0] * z[1]) / length
        pull = x[0] * x[2] + y[0] * y[2] + z[0] * z[2]
        return (pull + flat + z[1] * z[1] - rate * rate) / length
    rho, s, _, sine, cosine = pulley_shape(radius, x[0], y[0], z[0])
    out = (x[0] * x[1] + y[0] * y[1]) / rho
    away = (x[0] * x[2] + y[0] * y[2] + flat - out * out) / rho
    turn = (cosine * out - sine * z[1]) / s
    return sine * away + cosine * z[2] + s * turn * turn


@inner
def angle_between(x, y, angle):
    """From `angle` to the direction (x, y), within half a turn."""
    c, s = np.cos(angle), np.sin(angle)
    return arctangent(y * c - x * s, x * c + y * s)


@inner
def swivel_rates(x, y):
    """First and second time derivative of the angle of (x, y)."""
    square = x[0] * x[0] + y[0] * y[0]
    rate = (x[0] * y[1] - y[0] * x[1]) / square
    stretch = (x[0] * x[1] + y[0] * y[1]) / square
    return rate, (x[0] * y[2] - y[0] * x[2]) / square - 2.0 * rate * stretch
