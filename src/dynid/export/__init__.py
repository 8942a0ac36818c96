"""A result in the formats of other programs.

An exporter is a function `(Estimate, Mechanism, Path) -> files`: it writes into an existing folder and
returns what it wrote. To add one: a file here, and one line in EXPORTERS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dynid.common.errors import InputError, nearest
from dynid.common.registry import Registry
from dynid.mechanism.mechanism import Mechanism
from dynid.prediction.result_values import saved
from dynid.statistics.estimate import Estimate

Exporter = Callable[[Estimate, Mechanism, Path], Sequence[Path]]
EXPORTERS: Registry[Exporter] = Registry("dynid.exporters", {}, gives=("builtins:list", "builtins:tuple"))


def export_result(result: Path, formats: Sequence[str], folder: Path, robot: str | None = None) -> list[Path]:
    """Write a result in one or several formats.

    Args:
        result: A result.json or its folder.
        formats: Names in `EXPORTERS`.
        folder: Made if it does not exist.
        robot: Instead of the robot named in the result.
    """
    for name in formats:
        if name not in EXPORTERS:
            known = ", ".join(EXPORTERS) or "none: install a package that has some"
            raise InputError(
                f"unknown format '{name}'" + nearest(name, EXPORTERS), remedy=f"formats: {known}"
            )
    estimate, _, mechanism = saved(result, robot)
    exporters = [EXPORTERS[name] for name in formats]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"cannot be written: {error.strerror or error}"
        raise InputError(text, file=folder, remedy="choose another --out") from error
    return [Path(file) for exporter in exporters for file in exporter(estimate, mechanism, folder)]
