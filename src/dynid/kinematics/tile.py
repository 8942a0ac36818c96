"""Numbers that kernels and their callers share."""

from __future__ import annotations

LANES = 64  # samples that a kernel processes in parallel
ALONG, NORMAL, ROD, CABLE, SWIVEL = range(5)  # kinds of closure equations
INVERT, SCALE, SUBTRACT = range(3)  # steps of a plan that eliminates dependent coordinates
