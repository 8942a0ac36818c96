"""Writes sampled trajectories as files: CSV, `dynid.trajectory/1`, or a message of ROS 2, by the ending."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.excitation.export import SCHEMA, SampledTrajectory, trajectory_csv, trajectory_ros2


def write_trajectory(path, names, t, q, dq=None, ddq=None) -> Path:
    """The file; `.ros2.yaml` is a message, other `.yaml` are `dynid.trajectory/1`."""
    motion = SampledTrajectory(tuple(names), np.asarray(t, float), np.asarray(q, float), dq, ddq)
    file = Path(path)
    text = trajectory_csv if file.suffix == ".csv" else trajectory_yaml
    text = trajectory_ros2 if file.name.endswith(".ros2.yaml") else text
    file.write_text(text(motion), encoding="utf-8")
    return file


def trajectory_yaml(motion: SampledTrajectory) -> str:
    """`dynid.trajectory/1`: names, and one point per line."""
    lines = [f"schema: {SCHEMA}", f"joints: {[*motion.names]}", "points:"]
    parts = [("q", motion.q), ("dq", motion.dq), ("ddq", motion.ddq)]
    for k, time in enumerate(motion.t.tolist()):
        values = [f"{name}: {x[k].tolist()}" for name, x in parts if x is not None]
        lines.append(f"  - {{t: {time!r}, {', '.join(values)}}}")
    return "\n".join(lines) + "\n"
