"""Simulate a UR5-like arm, write its logs to files, identify it, and compare with the true values.

The logs are ordinary CSV files; with your own files the part from `identify` on stays the same.

Run:  python examples/serial_ur5.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from dynid import built_in_experiment, identify, write_log, write_results

SHOWN = ("Fv_", "Fs_", "Off_")


def main() -> None:
    """Print estimated and true friction and offsets."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = simulate(folder)
        estimate = identify(
            "ur5",
            [folder / "run1.csv", folder / "run2.csv"],
            validate=[folder / "other.csv"],
            estimator="wls",
        )
        write_results(estimate, folder / "ur5")
        files = ", ".join(sorted(path.name for path in (folder / "ur5").iterdir()))
    (check,) = estimate.validation
    print(f"residual of the fit {estimate.fit.residual_percent:.2f} %, of the other log ", end="")
    print(f"{check.residual_percent:.2f} %; files: {files}")
    print(f"{'parameter':<28}{'found':>9}{'sigma':>9}{'true':>9}  unit")
    for one in estimate.parameters:
        if one.name.startswith(SHOWN) and one.name in truth:
            print(f"{one.name:<28}{one.value:9.3f}{one.sigma:9.3f}{truth[one.name]:9.3f}  {one.unit}")


def simulate(folder: Path) -> dict[str, float]:
    """Write two logs to identify from and one to predict; return the true standard parameters."""
    demo = built_in_experiment("ur5", seed=7)
    for file, log in zip(("run1.csv", "run2.csv"), demo.logs, strict=True):
        write_log(log, folder / file)
    write_log(demo.validation, folder / "other.csv")
    return dict(demo.truth)


if __name__ == "__main__":
    main()
