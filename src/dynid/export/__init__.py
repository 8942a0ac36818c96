"""A result in the formats of other programs.

An exporter (`contract.py`) writes into an existing folder and returns what it wrote. To add one: a file here,
and one line in EXPORTERS.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dynid.common.errors import InputError, nearest
from dynid.common.registry import Registry
from dynid.export.contract import Exported, Exporter
from dynid.prediction.result_values import saved

EXPORTERS: Registry[Exporter] = Registry(
    "dynid.exporters",
    {
        "c": "dynid.export.code:export_c",
        "numpy": "dynid.export.code:export_numpy",
    },
    gives=("dynid.export.contract:Exported", "builtins:list", "builtins:tuple"),
)


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
    written = [exporter(estimate, mechanism, folder) for exporter in exporters]
    return [Path(file) for one in written for file in (one.files if isinstance(one, Exported) else one)]
