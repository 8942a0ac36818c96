"""The width of a tile: how many samples the kernels process in parallel."""

LANES = 64
