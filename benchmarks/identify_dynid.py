"""Whole identification of a simulated UR5: regressor, decimation of every column, base
parameters, least squares and covariance; the same data as the peers' scripts."""

from __future__ import annotations

import os
import time

import peers

common = peers.load()
import numpy as np  # noqa: E402
import pinocchio as pin  # noqa: E402

from dynid import load_robot  # noqa: E402
from dynid.base.system import base_system  # noqa: E402
from dynid.common.batched import single_threaded_blas  # noqa: E402
from dynid.estimator.estimator import estimator_named  # noqa: E402
from dynid.experiment.experiment import Experiment, FilterSettings, MaskSettings  # noqa: E402
from dynid.info import structural_base  # noqa: E402
from dynid.motion.logs import log_from_arrays  # noqa: E402
from dynid.pipeline import build_system, prepare  # noqa: E402

clock = time.process_time if int(os.environ.get("BENCH_CPU", "0")) else time.perf_counter
options = common.args(decim=10, noise=0.05, repeat=3)
path, _ = common.urdf(options.robot)
robot = load_robot(path)
model = pin.buildModelFromUrdf(path)
data = model.createData()
q, v, a = common.trajectory(options.n, model.nv)
rng = np.random.default_rng(3)
tau = np.array([pin.rnea(model, data, q[i], v[i], a[i]) for i in range(options.n)])
tau += 2.0 * v + 1.5 * np.sign(v) + 0.3 * a + 0.1 + options.noise * rng.normal(size=tau.shape)
t = 1e-3 * np.arange(options.n)
# Coordinates are given exactly, as for the peers: no filter on them, no masks.
experiment = Experiment(
    robot=robot,
    estimator="ols",
    filter=FilterSettings(kind="none", decimate=options.decim, velocity="measured"),
    mask=MaskSettings(speed=0.0, rest=0.0),
)
log = log_from_arrays(robot, t, q, tau, v, a)


def problem():
    stages, at = {}, clock()

    def mark(name):
        nonlocal at
        now = clock()
        stages[name], at = round(now - at, 4), now

    with single_threaded_blas():
        prepared = prepare(robot, [log], experiment)
        mark("plan")
        system = build_system(prepared, threads=peers.THREADS)
        mark("regressor_decimate_qr")
        base = structural_base(robot, prepared.model, prepared.parameters, prepared.directions)
        mark("structural_base")
        reduced = base_system(system, base)
        solution = estimator_named("ols")(reduced.system)
        mark("ols_covariance")
    return solution, stages


best = None
for _ in range(options.repeat + 1):
    start = clock()
    solution, stages = problem()
    seconds = clock() - start
    if best is None or seconds < best[0]:
        best = (seconds, stages)
common.emit(
    bench="identify",
    clock=clock.__name__,
    tool="dynid",
    robot=options.robot,
    n=options.n,
    decim=options.decim,
    threads=peers.THREADS,
    seconds=best[0],
    ns_per_sample=1e9 * best[0] / options.n,
    stages=best[1],
    base_parameters=len(solution.chi),
    rmse=float(solution.residual_norm / np.sqrt(solution.dof)),
)
