"""Built-in robots and the experiments of their demos, each read once; settings that keep data exact."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from dynid.experiment.experiment import FilterSettings, MaskSettings
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.robots.demo_file import Demo, demo_file, read_demo

# Exact rates, no filter and no mask: what is left is rounding.
EXACT: dict[str, Any] = {
    "filter": FilterSettings(kind="none", velocity="measured", decimate=1),
    "mask": MaskSettings(speed=0.0, rest=0.0),
}


@cache
def robot_of(name: str) -> Mechanism:
    """A built-in robot."""
    return load_robot(name)


def written_robot(folder: Path, text: str) -> Mechanism:
    """The robot of a file with this text."""
    file = folder / "robot.yaml"
    file.write_text(text, encoding="utf-8")
    return load_robot(file)


@cache
def demo_of(name: str) -> Demo:
    """Its simulated experiment."""
    return read_demo(demo_file(name), robot_of(name))


def truth_of(name: str) -> dict[str, float]:
    """Its true standard parameters by name, SI."""
    return dict(demo_of(name).truth)


def codes(found: Any) -> list[str]:
    """Codes of the warnings of a result or a validation, the notices of a robot or a log, or of a list."""
    listed = getattr(found, "warnings", getattr(found, "notices", found))
    return [notice.code for notice in listed]
