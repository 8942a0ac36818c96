"""Files of a result about its description: the grouping matrix, and the corrected robot file."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.base.system import BaseSystem
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.robot_file.robot_file import SCHEMA as ROBOT_SCHEMA
from dynid.statistics.description import Description

if TYPE_CHECKING:
    from dynid.fit import Fit

SCHEMA = "dynid.grouping/1"
GROUPING_FILE, CORRECTED_FILE = "grouping.json", "robot.corrected.yaml"
_YAML = (".yaml", ".yml")


def description_files(fit: Fit) -> dict[str, str]:
    """`grouping.json`, and `robot.corrected.yaml` where quantities of the description were found."""
    files = {GROUPING_FILE: grouping_json(fit.data)}
    if fit.description is not None and (fit.description.values or fit.description.gravity_sigma):
        text = corrected_robot(fit.task.mechanism, fit.description)
        if text:
            files[CORRECTED_FILE] = text
    return files


def grouping_json(data: BaseSystem) -> str:
    """chi_base = K chi_standard with names and units, every digit, one row of K per line."""
    document = {
        "schema": SCHEMA,
        "base": [{"name": parameter.name, "unit": parameter.unit} for parameter in data.system.parameters],
        "standard": [{"name": parameter.name, "unit": parameter.unit} for parameter in data.base.standard],
        "known": {
            data.base.standard[i].name: float(value)
            for i, value in enumerate(data.base.c.tolist())
            if value != 0.0
        },
        "tied": {name: list(members) for name, members in data.base.tied.items()},
    }
    head = json.dumps(document, indent=1, ensure_ascii=False)
    rows = ",\n  ".join(json.dumps(row) for row in data.G.tolist())
    return head.removesuffix("\n}") + f',\n "K": [\n  {rows}\n ]\n}}\n'


def corrected_robot(robot: Mechanism, description: Description) -> str:
    """The robot file with the values found, comments kept; empty for a robot without a file.

    Symbols keep their place. Lengths without a symbol are given under `dimensions:`, zeros under `zeros:`.
    """
    document = _original(robot)
    if document is None:
        return ""
    symbols = document.get("symbols") or {}
    for name, quantity in description.symbols.items():
        if not quantity.found:
            continue
        entry = {"value": quantity.value, "sigma": quantity.sigma}
        if name in symbols:
            symbols[name] = entry
        else:
            document.setdefault("dimensions", {})[name] = entry
    for name, quantity in description.zeros.items():
        if quantity.found:
            document.setdefault("zeros", {})[name] = {"value": quantity.value, "sigma": quantity.sigma}
    if description.gravity_sigma is not None:
        document["gravity"] = [float(x) for x in description.gravity]
    return _written(document)


def _original(robot: Mechanism) -> Any:
    """The robot file as it is written; of a URDF, MJCF or SDF alone a robot file over it; None: no file."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    path = Path(robot.file or "")
    if not path.is_file():
        return None
    if path.suffix.lower() not in _YAML:
        return CommentedMap(schema=ROBOT_SCHEMA, name=robot.name, source=str(path.resolve()))
    document = YAML().load(path.read_text(encoding="utf-8"))
    if "source" in document:
        document["source"] = str((path.parent / str(document["source"])).resolve())
    return document


def _written(document: Any) -> str:
    from ruamel.yaml import YAML

    yaml, text = YAML(), io.StringIO()
    yaml.width = 110
    yaml.dump(document, text)
    return text.getvalue()
