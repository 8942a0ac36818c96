"""The width of a tile: how many samples the kernels carry side by side."""

LANES = 64
