"""Numbers that kernels and their callers share."""

from __future__ import annotations

LANES = 64  # samples that a kernel processes in parallel
ALONG, NORMAL, ROD, CABLE, SWIVEL = range(5)  # kinds of closure equations
INVERT, SCALE, SUBTRACT = range(3)  # steps of a plan that eliminates dependent coordinates
# Fields of a link's state, base frame: R by rows, p, v, w (angular), a (minus gravity), dw.
R00, R01, R02, R10, R11, R12, R20, R21, R22 = range(9)
PX, PY, PZ, VX, VY, VZ, WX, WY, WZ, AX, AY, AZ, DWX, DWY, DWZ = range(9, 24)
XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, MASS = range(10)  # inertial parameters of a body
TWIST = 6  # fields of a twist or a wrench
LINEAR_X, LINEAR_Y, LINEAR_Z, ANGULAR_X, ANGULAR_Y, ANGULAR_Z = range(TWIST)
