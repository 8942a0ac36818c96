"""How a result was obtained: every choice in words.

Files of a result about its description: the grouping matrix, and the corrected robot file.
"""

from __future__ import annotations

import difflib
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.base.system import BaseSystem
from dynid.common.arrays import Array, Float
from dynid.experiment.estimator_choice import estimator_words
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.robot_file.robot_file import SCHEMA as ROBOT_SCHEMA
from dynid.problem import Problem
from dynid.report.numbers import sigma_text, value_text
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.estimate_parts import Description, Quantity
from dynid.statistics.uncertainty import half95

if TYPE_CHECKING:
    from ruamel.yaml import YAML

    from dynid.fit import Fit


_FIRST = ("MX", "MY", "MZ")
_OF_FRICTION = ("reversals", "rest")  # choices about samples where the sign of friction matters


def choices_of(fit: Fit, checked: Mapping[str, str], gate: Mapping[str, str]) -> dict[str, str]:
    """Every choice that was made from the data.

    Args:
        fit: Parameters and where they come from.
        checked: What the checks found.
        gate: What cross-validation and gate found.
    """
    return {
        **_flow(fit.problem),
        **estimator_words(fit.experiment, fit.problem.model, fit.problem.mechanism),
        "uncertainty": fit.parts.spread.words,
        **fit.choices,
        **({} if fit.standard is None else fit.standard.choices),
        **checked,
        **gate,
        **({} if fit.refined is None else {"refinement": fit.refined.words}),
        **load_words(fit.parts, fit.problem.mechanism.loaded_bodies),
    }


def _flow(problem: Problem) -> dict[str, str]:
    """Choices of logs, filters and rows; those that differ between logs carry the log's name."""
    rows = ", ".join(dict.fromkeys(problem.directions.group_names))
    has_efforts = problem.model.effort_rows and problem.case.measures_signals
    shared = has_efforts and np.all(np.count_nonzero(problem.directions.effort_map, axis=1) > 1)
    choices: dict[str, str] = {"equations": f"J_a^T tau along {rows}" if shared else rows}
    for log, plan, source in zip(problem.logs, problem.plans, problem.sources, strict=True):
        for name, text in {**log.choices, **plan.choices, **source.choices}.items():
            if name in _OF_FRICTION and not problem.case.measures_efforts:
                continue
            if choices.setdefault(name, text) != text:
                choices[f"{name} ({log.name})"] = text
    return choices


# Mass and centre of mass of a load as text, with intervals from the joint covariance.


def load_words(parts: EstimateParts, bodies: Sequence[str]) -> dict[str, str]:
    """`load box` -> `2.6002 +- 0.0026 kg, centre of mass (12.0, -8.0, 63.0) +- (0.2, 0.2, 0.4) mm ..`.

    c = h / M, sigma_c = |dh / M - c dM / M|: h and M err together. Behind +- is half of the 95 % interval.

    Args:
        parts: Parameters and their covariance.
        bodies: Tools and payloads; those whose mass or first moments are regrouped are left out.
    """
    fitted = [parameter for parameter in parts.parameters if parameter.sigma is not None]
    place: Mapping[str, int] = {parameter.name: k for k, parameter in enumerate(fitted)}
    texts = {}
    for body in bodies:
        mass = place.get(f"M_{body}")
        if mass is None or fitted[mass].value <= 0:
            continue
        kg, half = fitted[mass].value, float(half95(fitted[mass].sigma or 0.0, [fitted[mass]]))
        text = f"{value_text(kg, half)} +- {sigma_text(half)} kg"
        moments = [place.get(f"{symbol}_{body}") for symbol in _FIRST]
        if None not in moments:
            rows = np.zeros((3, len(fitted)))
            centre = np.array([fitted[k].value for k in moments if k is not None]) / kg
            for i, k in enumerate(moments):
                rows[i, k], rows[i, mass] = 1.0 / kg, -centre[i] / kg
            spread = 1e3 * np.sqrt(np.einsum("ip,pq,iq->i", rows, parts.covariance, rows))
            halves = half95(spread, [fitted[k] for k in (mass, *moments) if k is not None])
            text += f", centre of mass ({_listed(1e3 * centre)}) +- ({_listed(halves)}) mm in its frame"
        texts[f"load {body}"] = text
    return texts


def _listed(values: Float[Array, "3"]) -> str:
    return ", ".join(f"{x:.2f}" for x in values)


SCHEMA = "dynid.grouping/1"
GROUPING_FILE, CORRECTED_FILE = "grouping.json", "robot.corrected.yaml"
DIFFERENCE_FILE = f"{CORRECTED_FILE}.diff"
_YAML = (".yaml", ".yml")


def description_files(fit: Fit) -> dict[str, str]:
    """`grouping.json`; where quantities of the description were found, the corrected robot and its diff."""
    files = {GROUPING_FILE: grouping_json(fit.data)}
    if fit.description is not None and (fit.description.values or fit.description.gravity_sigma):
        text = corrected_robot(fit.task.mechanism, fit.description)
        if text:
            file = Path(fit.task.mechanism.file or "")
            before = file.read_text(encoding="utf-8") if file.suffix.lower() in _YAML else ""
            files[CORRECTED_FILE] = text
            files[DIFFERENCE_FILE] = difference(before, text, file.name, CORRECTED_FILE)
    return files


def difference(before: str, after: str, source: str, name: str) -> str:
    """The unified difference of two texts, named `source` and `name`."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), source, name, n=1, lineterm="")
    return "\n".join([*lines, ""])


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
        if name in symbols:
            symbols[name] = _entry(quantity)
        else:
            document.setdefault("dimensions", {})[name] = _entry(quantity)
    for name, quantity in description.zeros.items():
        if quantity.found:
            document.setdefault("zeros", {})[name] = _entry(quantity)
    if description.gravity_sigma is not None:
        pull = document.setdefault("gravity", _on_one_line([0.0, 0.0, 0.0]))
        pull[:] = [float(x) for x in description.gravity]  # in its place: the layout stays
    return _written(document, robot)


def _entry(quantity: Quantity) -> Any:
    """`{value: ..., sigma: ...}`."""
    return _on_one_line({"value": quantity.value, "sigma": quantity.sigma})


def _on_one_line(content: dict[str, float | None] | list[float]) -> Any:
    """A mapping or list that is written in brackets."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    entry = CommentedMap(content) if isinstance(content, dict) else CommentedSeq(content)
    entry.fa.set_flow_style()
    return entry


def _original(robot: Mechanism) -> Any:
    """The robot file as it is written; of a URDF, MJCF or SDF alone a robot file over it; None: no file."""
    from ruamel.yaml.comments import CommentedMap

    path = Path(robot.file or "")
    if not path.is_file():
        return None
    if path.suffix.lower() not in _YAML:
        return CommentedMap(schema=ROBOT_SCHEMA, name=robot.name, source=str(path.resolve()))
    document = _yaml().load(path.read_text(encoding="utf-8"))
    if "source" in document:
        document["source"] = str((path.parent / str(document["source"])).resolve())
    return document


def _written(document: Any, robot: Mechanism) -> str:
    """The text of a robot file, lists indented as in the original."""
    path = Path(robot.file or "")
    before = path.read_text(encoding="utf-8") if path.suffix.lower() in _YAML else ""
    item = re.search(r"^( *)- ", before, flags=re.MULTILINE)
    yaml, text = _yaml(), io.StringIO()
    offset = len(item[1]) if item else 2
    yaml.indent(mapping=2, sequence=offset + 2, offset=offset)
    yaml.dump(document, text)
    return text.getvalue()


def _yaml() -> YAML:
    """Reads and writes comments, quotes and long lines as they are."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, 4096
    return yaml
