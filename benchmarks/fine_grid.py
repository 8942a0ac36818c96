"""Tensions of designed free motions between their samples: simulated again on a grid 100 times finer.

Every sample of a motion is the start of its own short simulation up to the next sample. All of them run side
by side, so that 100 000 steps of one motion become 100 steps of a batch. The end of each is compared with
the next sample: the two simulations have steps of different size.

Run:  python benchmarks/fine_grid.py FOLDER [FOLDER ...]      (results of `dynid excite cable4`)
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path

import numpy as np
from jaxtyping import Float

from dynid.cases.free_motion.excitation import FreeStarter
from dynid.common.arrays import Array
from dynid.dynamics.free_motion import LockedCables, free_motions
from dynid.experiment.tasks import ExciteSettings

FINER = 100
_BATCH = 2500  # motions side by side: 100 MB


def between_samples(
    robot: LockedCables,
    lengths: Float[Array, "k c"],
    starts: Float[Array, "k q"],
    duration: float,
    rate: float,
    finer: int = FINER,
) -> tuple[Float[Array, "k 2"], Float[Array, "k 2"], float]:
    """Smallest and largest tension of each motion, at its samples and on the finer grid, in [N].

    Returns:
        Both ranges, and the largest difference of positions between the two simulations, in [m] or [1].
    """
    coarse = free_motions(robot, {}, lengths, starts, duration, rate)
    n, k, _ = coarse.q.shape
    q, dq = (x[:-1].transpose(1, 0, 2).reshape(k * (n - 1), -1) for x in (coarse.q, coarse.dq))
    after = coarse.q[1:].transpose(1, 0, 2).reshape(k * (n - 1), -1)
    own = np.repeat(lengths, n - 1, axis=0)
    ranges, apart = [], 0.0
    for i in range(0, len(q), _BATCH):
        part = slice(i, i + _BATCH)
        fine = free_motions(robot, {}, own[part], q[part], 1.0 / rate, finer * rate, dq[part])
        ranges.append(np.stack([fine.tensions.min(axis=(0, 2)), fine.tensions.max(axis=(0, 2))], axis=1))
        apart = max(apart, float(np.abs(fine.q[-1] - after[part]).max()))
    each = np.concatenate(ranges).reshape(k, n - 1, 2)
    at_samples = np.stack([coarse.tensions.min(axis=(0, 2)), coarse.tensions.max(axis=(0, 2))], axis=1)
    return at_samples, np.stack([each[:, :, 0].min(axis=1), each[:, :, 1].max(axis=1)], axis=1), apart


def releases_of(folder: Path) -> tuple[Float[Array, "k c"], Float[Array, "k q"]]:
    """Locked lengths and starting poses of a designed set, as `motions.csv` has them."""
    with (folder / "motions.csv").open() as file:
        first = {row["segment"]: row for row in reversed(list(csv.DictReader(file)))}
    rows = [first[segment] for segment in sorted(first, key=int)]
    poses = np.array([[float(row[name]) for name in ("x", "y", "z", "qw", "qx", "qy", "qz")] for row in rows])
    names = [name for name in rows[0] if name.startswith("l0_")]
    return np.array([[float(row[name]) for name in names] for row in rows]), poses


def main(folders: list[Path]) -> None:
    """Print a line per folder."""
    releasing = FreeStarter("cable4", ExciteSettings()).releasing
    low, high = releasing.limits.tension[:, 0].max(), releasing.limits.tension[:, 1].min()
    print(f"limits {low:g} to {high:g} N; C and tensions [N] at samples and {FINER} times finer")
    for folder in folders:
        begin = time.process_time()
        C = json.loads((folder / "excitation.json").read_text())["criterion"]
        samples, fine, apart = between_samples(releasing.robot, *releases_of(folder), 10.0, 100.0)
        print(
            f"{folder.name}: C {C:.3f}; {samples[:, 0].min():.4f} {samples[:, 1].max():.3f};"
            f" {fine[:, 0].min():.4f} {fine[:, 1].max():.3f};"
            f" {'within' if low <= fine[:, 0].min() and fine[:, 1].max() <= high else 'VIOLATED'};"
            f" simulations apart by {apart:.1e}; {time.process_time() - begin:.0f} s CPU",
            flush=True,
        )


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
