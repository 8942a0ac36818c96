"""Regressor of 65 814 samples of a UR5: streamed in tiles (as identification uses it) or stored."""

from __future__ import annotations

import peers

common = peers.load()
import numpy as np  # noqa: E402

from dynid import load_robot  # noqa: E402
from dynid.info import variant  # noqa: E402
from dynid.mechanism.parameters import parameter_table  # noqa: E402
from dynid.regressor.layout import tree_regressor  # noqa: E402

options = common.args(mode="discard", tile=512)
path, _ = common.urdf(options.robot)
robot = variant(load_robot(path), drive=())
parameters = parameter_table(robot)
n_v = len(robot.coordinates)
regressor = tree_regressor(robot, parameters, np.eye(n_v))
q, v, a = common.trajectory(options.n, n_v)
Y = np.zeros((options.n, n_v))
checksum = 0.0


def discard():
    for at in range(0, options.n, options.tile):
        part = slice(at, at + options.tile)
        packed = regressor.packed(q[part], v[part], a[part], Y[part])
    return packed


def fresh():
    """W as the peers store it: (n, joints, 10 bodies) without structural zeros, one array."""
    return regressor.packed(q, v, a, Y)


run = discard if options.mode == "discard" else fresh
seconds, first, packed = common.best(run, options.repeat)
common.emit(
    bench="regressor",
    tool="dynid",
    mode=options.mode,
    robot=options.robot,
    n=options.n,
    seconds=seconds,
    ns_per_sample=1e9 * seconds / options.n,
    first_call_s=first,
    checksum=float(np.abs(packed).sum()),
)
