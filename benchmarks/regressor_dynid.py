"""Regressor of 65 814 samples of a UR5, tile by tile: `discard` overwrites one tile, `fresh` keeps
every entry in a new array (tiles, entries, lanes), without the zeros of the structure."""

from __future__ import annotations

import peers

common = peers.load()
import numpy as np  # noqa: E402

from dynid import load_robot  # noqa: E402
from dynid.info import variant  # noqa: E402
from dynid.kinematics.tile import LANES  # noqa: E402
from dynid.mechanism.parameters import parameter_table  # noqa: E402
from dynid.regressor.layout import tree_regressor  # noqa: E402

options = common.args(mode="discard")
path, _ = common.urdf(options.robot)
robot = variant(load_robot(path), drive=())
n_v = len(robot.coordinates)
regressor = tree_regressor(robot, parameter_table(robot), np.eye(n_v))
entries = regressor.layout.n_entries
q, v, a = common.trajectory(options.n, n_v)
Y = np.zeros((options.n, n_v))
tiles = -(-options.n // LANES)


def discard():
    batch, tile = regressor.batch(q, v, a, Y), np.empty((entries, LANES))
    for i in range(tiles):
        regressor.fill(batch, i * LANES, tile)
    return tile


def fresh():
    batch, stored = regressor.batch(q, v, a, Y), np.empty((tiles, entries, LANES))
    for i in range(tiles):
        regressor.fill(batch, i * LANES, stored[i])
    return stored


seconds, first, stored = common.best(discard if options.mode == "discard" else fresh, options.repeat)
if options.mode == "fresh":
    stored[-1, :, options.n - (tiles - 1) * LANES :] = 0.0  # lanes beyond the last sample
common.emit(
    bench="regressor",
    tool="dynid",
    mode=options.mode,
    robot=options.robot,
    n=options.n,
    seconds=seconds,
    ns_per_sample=1e9 * seconds / options.n,
    first_call_s=first,
    checksum=float(np.abs(stored).sum()),
)
