"""Some samples of a force sensor's logs, and small dense fits to them: starts, tests of hypotheses.

    measured = s W(motion) chi + bias + rho

The identification itself streams all rows; this looks at a few thousand of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.problem import Problem
from dynid.projection.factor import column_sizes
from dynid.projection.sensor import SensorMotion, SensorRows

_MOST = 4000
_BLOCK = 16384


@dataclass(frozen=True, eq=False)
class SensorSamples:
    """Evenly spaced samples of all logs of a problem.

    Attributes:
        motion: Of the sensor's nominal frame.
        measured: As logged, shape (n, 6), in [N, N m]; NaN in components that no log has.
        run: Number of the segment, counted over all logs, shape (n,).
        load: Number of the set of payloads that was mounted, shape (n,).
        labels: Log and number (from 1) of each segment.
    """

    motion: SensorMotion
    measured: Float[Array, "n 6"]
    run: Int[Array, "n"]
    load: Int[Array, "n"]
    labels: tuple[str, ...]

    @property
    def n_loads(self) -> int:
        """How many different sets of payloads there are."""
        return int(self.load.max(initial=0)) + 1


@dataclass(frozen=True, eq=False)
class DenseFit:
    """Least squares over all six components, each weighted by one over the rms of its residual.

    Attributes:
        x, sigma: Solution and its deviation for independent noise, shape (c,).
        rms: Of the residual of each component, shape (6,), in [N, N m]; NaN where it is not measured.
    """

    x: Float[Array, "c"]
    sigma: Float[Array, "c"]
    rms: Float[Array, "6"]


def sensor_samples(problem: Problem) -> SensorSamples:
    """A few thousand samples of a problem of the sensor model."""
    sources = [source for source in problem.sources if isinstance(source, SensorRows)]
    total = sum(stop - start for source in sources for start, stop in source.pieces())
    step = max(1, -(-total // _MOST))
    loads = list(dict.fromkeys(problem.loads))
    parts = []
    labels: list[str] = []
    for source, mounted in zip(sources, problem.loads, strict=True):
        log = source.motion.log
        first = len(labels)
        labels += [f"{log.name}, segment {i + 1}" for i in range(len(log.segments))]
        edges = np.array([low for low, _ in log.segments])
        for start, stop in source.pieces():
            for at in range(start, stop, _BLOCK):
                moved = source.frames.along(at, source.motion.states(at, min(at + _BLOCK, stop)))
                index = np.arange(at, min(at + _BLOCK, stop))
                use = log.valid[index] & moved.fine
                use &= np.all(np.isfinite(log.tau[index][:, source.present]), axis=1)
                take = np.flatnonzero(use)[::step]
                run = first + np.searchsorted(edges, index[take], side="right") - 1
                load = np.full(len(take), loads.index(mounted))
                measured = log.tau[index[take]]
                parts.append((moved.R[take], moved.omega[take], moved.dV[take], measured, run, load))
    R, omega, dV, measured, run, load = (np.concatenate([part[k] for part in parts]) for k in range(6))
    motion = SensorMotion(R, omega, dV, np.ones(len(R), dtype=bool))
    return SensorSamples(motion, measured, run, load, tuple(labels))


def dense_fit(columns: Float[Array, "n 6 c"], measured: Float[Array, "n 6"]) -> DenseFit:
    """Weighted least squares of a few thousand samples; components with NaN take no part."""
    present = np.all(np.isfinite(measured), axis=0)
    columns, measured = columns[:, present], measured[:, present]
    n, k, c = columns.shape
    scale = np.std(measured, axis=0)
    for _ in range(3):
        scale = np.where(scale > 0, scale, 1.0)
        W = (columns / scale[:, None]).reshape(k * n, c)
        Y = (measured / scale).reshape(-1)
        size = column_sizes(W)
        x, _, rank, s = np.linalg.lstsq(W / size, Y, rcond=1e-9)
        rho = measured - columns @ (x / size)
        scale = np.sqrt(np.mean(rho**2, axis=0))
    _, _, Vt = np.linalg.svd(W / size, full_matrices=False)
    # A direction that the data do not determine gets a very large but finite value.
    inverse = 1.0 / np.maximum(s, 1e-9 * s[0])
    sigma = np.sqrt(np.sum((Vt.T * inverse) ** 2, axis=1)) / size
    rms = np.full(6, np.nan)
    rms[present] = scale
    return DenseFit(x / size, sigma * np.sqrt(k * n / max(k * n - int(rank), 1)), rms)


def per_load(columns: Float[Array, "n 6 c"], load: Int[Array, "n"], n_loads: int) -> Float[Array, "n 6 d"]:
    """The same columns once for each set of payloads."""
    parts = [np.where((load == k)[:, None, None], columns, 0.0) for k in range(n_loads)]
    return np.concatenate(parts, axis=2)


def bias_columns(n: int, run: Int[Array, "n"] | None = None) -> Float[Array, "n 6 c"]:
    """Six constants, or six for each run."""
    identities = np.broadcast_to(np.eye(6), (n, 6, 6))
    if run is None:
        return np.array(identities)
    numbers: Sequence[int] = np.unique(run).tolist()
    return np.concatenate([np.where((run == k)[:, None, None], identities, 0.0) for k in numbers], axis=2)


def turned_forces(samples: SensorSamples) -> tuple[Float[Array, "3 3"], float]:
    """A of f = A a + bias, summed over the loads, and the rms of what is left over, in [N]."""
    total, left = np.zeros((3, 3)), []
    for k in range(samples.n_loads):
        of_load = samples.load == k
        a, f = samples.motion.dV[of_load, :3], samples.measured[of_load, :3]
        if len(a) > 4:
            a, f = a - a.mean(axis=0), f - f.mean(axis=0)
            A = np.linalg.lstsq(a, f, rcond=1e-6)[0].T
            total += A
            left.append(np.mean((f - a @ A.T) ** 2))
    return total, float(np.sqrt(np.mean(left))) if left else 0.0


def nearest_rotation(M: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """The rotation nearest to a matrix."""
    U, _, Vt = np.linalg.svd(M)
    return np.asarray(U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt)
