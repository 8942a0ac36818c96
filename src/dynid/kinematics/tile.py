"""Numbers that kernels and their callers share: width of a tile of samples, kinds of closure equations."""

from __future__ import annotations

LANES = 64


ALONG, NORMAL, ROD, CABLE, SWIVEL = range(5)
