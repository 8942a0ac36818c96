"""Every row of the fault table has its tests; those that no other file holds are here."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import expanding, load_robot
from dynid.motion.logs import log_from_columns
from dynid.problem import prepare
from tests.arms import arm, recording
from tests.faults_table import ROWS
from tests.workspace import dynid

HERE = Path(__file__).parent
XACRO = """<robot name="a" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="prefix" default="my_"/>
<link name="base"/><link name="up"><inertial><mass value="${1+0.5}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"
 iyz="0" izz="1"/></inertial></link><joint name="$(arg prefix)turn" type="continuous"><parent link="base"/>
<child link="up"/><axis xyz="0 0 1"/></joint></robot>"""


@cache
def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_has_tests_that_exist() -> None:
    assert set(ROWS) == set(range(1, 71))
    for row, tests in ROWS.items():
        assert tests, row
        for one in tests:
            file, _, function = one.partition("::")
            assert function in functions_of(HERE / file), f"row {row}: {one}"


NUMBERED = re.compile(r"test_(?:fault_)?((?:[0-9]{2}_)+)")


def test_tests_named_after_a_row_are_listed_under_it() -> None:
    """So the table says all that is tested of a row, and a number in a name is that of its row."""
    listed = {(row, test) for row, tests in ROWS.items() for test in tests}
    for file in sorted(HERE.glob("test_*.py")):
        for name in functions_of(file):
            numbers = NUMBERED.match(name)
            for number in numbers[1].split("_")[:-1] if numbers else ():
                assert (int(number), f"{file.name}::{name}") in listed, f"{file.name}::{name}"


def test_05_the_command_line_can_lift_the_limits_that_it_names(tmp_path: Path) -> None:
    """The remedy of a refusal can be followed."""
    links = "".join(f"<link name='l{i}'/>" for i in range(1100))
    joints = "".join(
        f"<joint name='j{i}' type='fixed'><parent link='l{i}'/><child link='l{i + 1}'/></joint>"
        for i in range(1098)
    )
    last = "<joint name='turn' type='continuous'><parent link='l1098'/><child link='l1099'/></joint>"
    file = tmp_path / "large.urdf"
    file.write_text(f"<robot name='large'>{links}{joints}{last}</robot>", encoding="utf-8")
    refused = dynid("info", str(file))
    assert refused.exit_code == 2
    assert "--no-limits" in refused.output
    assert dynid("--no-limits", "info", str(file)).exit_code == 0


@pytest.mark.parametrize(("name", "said"), [("arm.xacro", "xacro arm.xacro"), ("arm.usd", "usd2mjcf")])
def test_14_xacro_and_usd_are_refused_with_their_converter(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_text(XACRO, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_robot(tmp_path / name)
    assert said in (caught.value.remedy or "")


def test_14_xacro_is_expanded_only_if_asked(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    file = tmp_path / "arm.xacro"
    file.write_text(XACRO, encoding="utf-8")
    assert "left_turn" in dynid("--xacro", "prefix:=left_", "info", str(file), "--json").output
    with expanding():
        (joint,) = load_robot(file).joints
        assert joint.name == "my_turn"
        file.write_text(XACRO.replace("1+0.5", "(1).__class__"), encoding="utf-8")
        with pytest.raises(InputError, match="cannot be expanded"):
            load_robot(file)
        file.write_text(XACRO.replace("${1+0.5}", "heavy"), encoding="utf-8")
        with pytest.raises(InputError, match="not a finite number"):
            load_robot(file)
    assert dynid("--xacro", "prefix", "robots").exit_code == 2


def test_21_a_missing_effort_beside_an_unmatched_effort_column_is_refused() -> None:
    columns = recording()
    columns["tau_3"] = columns.pop("tau_2")
    log = log_from_columns(columns, arm())
    assert "effort-unmatched" in [one.code for one in log.notices]
    with pytest.raises(InputError, match=r"no column for tau_2.*tau_3"):
        prepare(arm(), [log], Experiment(robot=arm()))
    prepare(arm(), [log], Experiment(robot=arm(), efforts=(1,)))


PROCESSORS = {
    "as it is": {},
    "an old one": {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F"},
    "two threads": {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"},
}


def test_70_another_processor_gives_the_same_choices_verdict_and_values(tmp_path: Path) -> None:
    """Other instructions of BLAS and NumPy round differently; sigmas are 1e6 times larger than that."""
    start = [sys.executable, "-m", "dynid"]
    options = {"cwd": tmp_path, "check": True, "capture_output": True}
    subprocess.run([*start, "simulate", "rrr3", "--duration", "3", "--out", "a.csv"], **options)
    results = []
    for k, environment in enumerate(PROCESSORS.values()):
        command = [*start, "identify", "--robot", "rrr3", "--log", "a.csv", "--out", f"r{k}"]
        subprocess.run(command, env={**os.environ, **environment}, **options)
        results.append(json.loads((tmp_path / f"r{k}" / "result.json").read_text()))
    first, *others = results
    for other in others:
        assert other["verdict"]["level"] == first["verdict"]["level"]
        assert [said["code"] for said in other["warnings"]] == [said["code"] for said in first["warnings"]]
        chosen = [[tried["chosen"] for tried in result.get("choices_tried", [])] for result in (first, other)]
        assert chosen[0] == chosen[1]
        for a, b in zip(first["parameters"], other["parameters"], strict=True):
            assert a["name"] == b["name"]
            assert b["value"] == pytest.approx(a["value"], rel=1e-9, abs=1e-6 * (a["sigma"] or 0.0))
