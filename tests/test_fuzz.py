"""Files of every kind, damaged at random: a command ends with 0, 2 or 3, says why, and leaves no debris.

A short version; each example is a seeded draw, so that a failure can be repeated.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynid.common.strict_yaml import read_yaml
from tests.workspace import dynid

URDF = """<robot name="planar">
  <link name="root"/>
  <link name="l1"><inertial><mass value="2"/><origin xyz="0.2 0 0" rpy="0 0 0"/>
    <inertia ixx="0.01" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="l2"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>
    <inertia ixx="0.01" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j1" type="revolute"><parent link="root"/><child link="l1"/><origin xyz="0 0 0.3"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="3" effort="50"/></joint>
  <joint name="j2" type="continuous"><parent link="l1"/><child link="l2"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 1 0"/><mimic joint="j1" multiplier="0.5" offset="0"/></joint>
</robot>
"""
MJCF = """<mujoco model="m"><compiler angle="radian"/><worldbody>
  <body name="a" pos="0 0 1"><joint name="ja" type="hinge" axis="0 1 0" range="-1 1"/>
    <inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.02 0.02"/>
    <body name="b" pos="0.2 0 0"><joint name="jb" type="hinge" axis="0 1 0"/>
      <inertial mass="0.5" pos="0.1 0 0" diaginertia="0.01 0.02 0.02"/></body></body>
  <body name="c" pos="0.4 0 1"><joint name="jc" type="hinge" axis="0 1 0"/>
    <inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.02 0.02"/></body>
  </worldbody><equality><connect name="close" body1="b" body2="c" anchor="0.3 0 0.2"/></equality>
  <actuator><motor name="m" joint="ja" gear="10"/></actuator></mujoco>
"""
# File that is damaged, and the commands that read it; what they may write.
TARGETS = {
    "arm.yaml": (("info", "arm.yaml"),),
    "arm.urdf": (("info", "arm.urdf"),),
    "closed.xml": (("info", "closed.xml"),),
    "experiment.yaml": (("identify", "experiment.yaml", "--out", "o"),),
    "simulation.yaml": (
        ("simulate", "arm.yaml", "--truth", "truth.yaml", "--config", "simulation.yaml", "--out", "o.csv"),
    ),
    "log.truth.json": (
        ("simulate", "arm.yaml", "--truth", "log.truth.json", "--rate", "50", "--out", "o.csv"),
    ),
    "log.csv": (
        ("identify", "experiment.yaml", "--out", "o"),
        ("validate", "result", "log.csv", "--out", "o"),
        ("predict", "result", "log.csv", "--out", "o.csv"),
    ),
    "other.parquet": (("validate", "result", "other.parquet", "--out", "o"),),
    "result/result.json": (
        ("validate", "result", "log.csv", "--out", "o"),
        ("predict", "result", "log.csv", "--out", "o.csv"),
        ("compare", "result", "copy", "--out", "o"),
    ),
}
ODD: tuple[Any, ...] = (None, "", "x", -1, 0, 3, 1e308, 1e30, math.nan, math.inf, True, [], {}, [1, 2])
ODD += ({"a": 1}, "ü ß", "<script>", "a" * 300, 10**30, -5.5, "pi/0", "1e400", "1,5", [[]], "base", "*")
ODD += ("--20", "\u0661", "\u22121", "\x1b]0;x\x07", "a\u202eb", "a\rb")
CELLS = ("\u0661", "\uff11", "", "nan", "inf", "x", "1e308", "1,5", "0", "-1", "ü", '"', "9" * 40)


@pytest.fixture(scope="module")
def made(made):
    (made / "arm.urdf").write_text(URDF)
    (made / "closed.xml").write_text(MJCF)
    shutil.copytree(made / "result", made / "copy")
    return made


def _places(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for k, v in inner for place in ((*before, k), *_places(v, (*before, k)))]


def _damaged_tree(value: Any, rng: random.Random) -> Any:
    place = rng.choice(_places(value))
    parent = value
    for k in place[:-1]:
        parent = parent[k]
    kind = rng.choice(("delete", "set", "set", "double", "rename", "number"))
    last = place[-1]
    if kind == "delete":
        del parent[last]
    elif kind == "double" and isinstance(parent, list):
        parent.append(parent[last])
    elif kind == "rename" and isinstance(parent, dict):
        parent[f"{last}x"] = parent.pop(last)
    elif kind == "number" and isinstance(parent[last], int | float):
        parent[last] = rng.choice((-1, 0, 1e-3, 1e3, 1e12)) * parent[last]
    else:
        parent[last] = rng.choice(ODD)
    return value


def _plain(node: Any) -> Any:
    """A YAML node as plain values."""
    if isinstance(node.value, dict):
        return {name: _plain(one) for name, one in node.value.items()}
    return [_plain(one) for one in node.value] if isinstance(node.value, list) else node.value


def _yaml(value: Any) -> str:
    """Flow style, which JSON nearly is."""
    return json.dumps(value, ensure_ascii=False).replace("NaN", ".nan").replace("Infinity", ".inf")


def _damaged_text(text: str, rng: random.Random) -> str:
    """Attributes of XML or cells of CSV, one of them changed."""
    mark = '"' if text.startswith("<") else ","
    parts = text.split(mark)
    at = rng.randrange(1, len(parts))
    parts[at] = rng.choice((*CELLS[:-2], str(rng.choice(ODD)).replace('"', "")))
    return mark.join(parts)


def _damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return rng.choice(
        (
            data[:at],
            b"\xef\xbb\xbf" + data,
            data.replace(b"\n", b"\r\n"),
            data[:at] + bytes([rng.randrange(256)]) + data[at:],
            data[:at] + b"\0" + data[at:],
            b"",
            data.decode("utf-8", "replace").encode("utf-16"),
        )
    )


def _damage(file: Path, rng: random.Random) -> None:
    data = file.read_bytes()
    kind = file.suffix
    if kind == ".parquet" or rng.random() < 0.2:
        file.write_bytes(_damaged_bytes(data, rng))
    elif kind == ".yaml":
        tree = _damaged_tree(_plain(read_yaml(file)), rng)
        file.write_text(_yaml(tree), encoding="utf-8")
    elif kind == ".json":
        file.write_text(json.dumps(_damaged_tree(json.loads(data), rng)), encoding="utf-8")
    else:
        file.write_text(_damaged_text(data.decode(), rng), encoding="utf-8")


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=6, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_damaged_files_are_refused_or_used(made, tmp_path_factory, target, seed):
    rng = random.Random(seed)  # noqa: S311
    here = tmp_path_factory.mktemp("fuzz") / "here"
    shutil.copytree(made, here)
    _damage(here / target, rng)
    files = {path.relative_to(here) for path in here.rglob("*")}
    before = Path.cwd()
    os.chdir(here)
    try:
        found = dynid(*rng.choice(TARGETS[target]))
    finally:
        os.chdir(before)
    new = {path.relative_to(here) for path in here.rglob("*")} - files
    shutil.rmtree(here)
    assert found.exit_code in (0, 2, 3), found.output
    if found.exit_code == 2:
        assert not new
        assert found.stderr.startswith(("error: ", "Usage: "))
    assert not set("\x1b\x07\u202e") & set(found.output)
