"""Poses of a 6-UPS platform from its leg lengths: the peers' geometry and motion, dynid's general closure.

The platform floats, every leg is a universal joint, a slide and a loop that ends at the platform:
24 coordinates and 18 equations, of which the user names the geometry only.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import peers

common = peers.load()
import numpy as np  # noqa: E402
import stewart_scipy as peer  # noqa: E402

from dynid import load_robot  # noqa: E402
from dynid.kinematics.assembly import assembly_of  # noqa: E402
from dynid.kinematics.sensors import sensors_of  # noqa: E402

options = peer.a_
clock = time.process_time if int(os.environ.get("BENCH_CPU", "0")) else time.perf_counter


def robot_text() -> str:
    """The peers' geometry as a robot file."""
    joints = ["  - {name: pose, kind: free, parent: base, child: platform}"]
    loops, start = [], ["pose_z: 1.2"]
    for i, (b, p) in enumerate(zip(peer.BASE.tolist(), peer.PLAT.tolist(), strict=True), start=1):
        joints += [
            f"  - {{name: foot{i}, kind: universal, parent: base, child: cylinder{i}, xyz: {b},"
            " axes: [[1, 0, 0], [0, 1, 0]]}",
            f"  - {{name: leg{i}, kind: prismatic, parent: cylinder{i}, child: rod{i}}}",
        ]
        loops.append(
            f"  - {{name: ball{i}, kind: point, a: {{body: rod{i}}}, b: {{body: platform, xyz: {p}}}}}"
        )
        start.append(f"leg{i}: {np.linalg.norm(np.add(p, [0, 0, 1.2]) - b)}")
    measured = ", ".join(f"leg{i}" for i in range(1, 7))
    lines = ["name: platform", "gravity: [0, 0, -9.81]", "joints:", *joints, "loops:", *loops]
    return "\n".join([*lines, f"start: {{{', '.join(start)}}}", f"actuators: [{measured}]"]) + "\n"


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "platform.yaml"
    file.write_text(robot_text())
    robot = load_robot(file)
X = peer.poses(options.n)
lengths = np.sqrt(np.array([peer.residual(x, 0.0) for x in X]))
assembly = assembly_of(robot)
sensors = sensors_of(robot, robot.measured_positions)
first = clock()
assembly.track(lengths[:1000], sensors, peers.THREADS)
first = clock() - first
best = float("inf")
for _ in range(options.repeat):
    start = clock()
    q = assembly.track(lengths, sensors, peers.THREADS)
    best = min(best, clock() - start)
xyz = q[:, [robot.positions.index(f"pose_{axis}") for axis in "xyz"]]
turn = q[:, [robot.positions.index(f"pose_{part}") for part in ("qw", "qx", "qy", "qz")]]
half = [np.cos(0.5 * X[:, 3:]), np.sin(0.5 * X[:, 3:])]
(cx, cy, cz), (sx, sy, sz) = half[0].T, half[1].T
true = np.column_stack(
    [
        cx * cy * cz - sx * sy * sz,
        sx * cy * cz + cx * sy * sz,
        cx * sy * cz - sx * cy * sz,
        cx * cy * sz + sx * sy * cz,
    ]
)
turn *= np.sign(np.sum(turn * true, axis=1, keepdims=True))
common.emit(
    bench="stewart_fk",
    tool="dynid",
    clock=clock.__name__,
    n=options.n,
    seconds=best,
    ns_per_sample=1e9 * best / options.n,
    first_call_s=first,
    max_error=float(max(np.abs(xyz - X[:, :3]).max(), np.abs(turn - true).max())),
)
