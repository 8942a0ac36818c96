"""Other packages extend dynid: a toy of every kind, registered as a package would, used by the commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dynid.checks import CHECKS
from dynid.common import registry
from dynid.estimator.estimator import MAKERS
from dynid.mechanism.load import DESCRIPTIONS, load_robot
from dynid.motion.logs import READERS
from dynid.problem import as_asked
from dynid.projection.model import MODELS
from dynid.regressor.adjoint import _STEP
from tests.workspace import dynid, make_workspace

# Files of the package; each toy is what a user would write.
TOYS = {
    "reader": """
import numpy as np
from dynid.motion.table import Table

def read(path, drop_bad_rows):
    names, *rows = (line.split("|") for line in path.read_text().splitlines())
    return Table(dict(zip(names, np.array(rows, float).T)))
""",
    "description": """
from dynid.mechanism.load import load_robot

def read(path):
    return load_robot(path.parent / path.read_text().strip())
""",
    "exporter": """
def write(estimate, mechanism, folder):
    file = folder / f"{mechanism.name}.ini"
    file.write_text("".join(f"{one.name} = {one.value!r}\\n" for one in estimate.parameters))
    return [file]
""",
    "estimator": """
from dynid.estimator.estimator import Estimator
from dynid.estimator.wls import unit_weights

def make():
    return Estimator("plain", "all rows alike", unit_weights)
""",
    "model": """
from dynid.projection.model import Model, rows_of
from dynid.projection.power import power_directions
from dynid.projection.structure import structural_factor

WORK = Model("work", "rate of work", power_directions, rows_of, structural_factor)
""",
    "check": """
from dynid.common.notices import Notice

def light(finished):
    for one in finished.fit.parts.parameters:
        if one.name.startswith("ZZ_fore"):
            yield Notice("toy-inertia", f"{one.name} is {one.value:.2g} {one.unit}", "nothing to do")
""",
    "friction": """
import numpy as np

def smooth(q, dq, ddq):
    return np.tanh(dq / 0.1)
""",
    "broken": "raise RuntimeError('half written')",
    "failing": """
def read(path, *more):
    return 1 / 0

def wrong(*given):
    return "text"
""",
}
POINTS = """
[dynid.readers]
.bar = toys.reader:read
.zero = toys.failing:read
.text = toys.failing:wrong
[dynid.descriptions]
.toy = toys.description:read
.half = toys.broken:read
[dynid.exporters]
ini = toys.exporter:write
[dynid.estimators]
plain = toys.estimator:make
half = toys.broken:make
absent = toys.estimator:no_such_name
[dynid.models]
work = toys.model:WORK
[dynid.checks]
Is the forearm light? = toys.check:light
[dynid.friction]
Ft = toys.friction:smooth
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace, made before the package of toys is installed."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("plugins")
        patch.chdir(place)
        yield make_workspace(place)


@pytest.fixture
def toys(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package `toy-robots` is installed, in a folder of its own; gives the workspace."""
    (tmp_path / "toys").mkdir()
    (tmp_path / "toys" / "__init__.py").touch()
    for name, text in TOYS.items():
        (tmp_path / "toys" / f"{name}.py").write_text(text)
    own = tmp_path / "toy_robots-0.1.dist-info"
    own.mkdir()
    (own / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-robots\nVersion: 0.1\n")
    (own / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(folder)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "toys"]:
        del sys.modules[name]


def result(*arguments: str, out: Path) -> dict[str, dict[str, object]]:
    done = dynid("identify", *arguments, "--out", str(out))
    assert done.exit_code == 0, done.output
    found: dict[str, dict[str, object]] = json.loads((out / "result.json").read_text())
    return found


def values(document: dict[str, dict[str, object]]) -> dict[str, float]:
    return {one["name"]: one["value"] for one in document["parameters"]}  # type: ignore[index,misc]


def test_a_reader_a_description_an_estimator_and_a_check(toys: Path, tmp_path: Path) -> None:
    (toys / "log.bar").write_text((toys / "log.csv").read_text().replace(",", "|"))
    (toys / "arm.toy").write_text("arm.yaml\n")
    options = ("--log", "log.bar", "--robot", "arm.toy", "--estimator", "plain")
    found = result(*options, out=tmp_path / "toy")
    same = result("--log", "log.csv", "--robot", "arm.yaml", "--estimator", "ols", out=tmp_path / "own")
    assert values(found) == values(same)
    assert "toy-inertia" in [one["code"] for one in found["warnings"]]  # type: ignore[index]


def test_a_model(toys: Path, tmp_path: Path) -> None:
    options = ("--robot", "arm.yaml", "--log", "log.csv", "--model")
    assert values(result(*options, "work", out=tmp_path / "toy")) == values(
        result(*options, "power", out=tmp_path / "own")
    )


def test_an_exporter(toys: Path, tmp_path: Path) -> None:
    done = dynid("export", "result", "--to", "ini", "--out", str(tmp_path / "exported"))
    assert done.exit_code == 0, done.output
    document = json.loads((toys / "result" / "result.json").read_text())
    lines = (tmp_path / "exported" / "arm.ini").read_text().splitlines()
    assert {line.split(" = ")[0]: float(line.split(" = ")[1]) for line in lines} == values(document)
    refused = dynid("export", "result", "--to", "inn")
    assert refused.exit_code == 2
    assert "'ini'" in refused.output


def test_a_friction_term_is_the_column_that_it_computes(toys: Path, tmp_path: Path) -> None:
    """As if the same function were written in the robot file under `terms:`."""
    robot = (toys / "arm.yaml").read_text()
    # tanh(dq / 0.1); `sign` makes samples near reversals masked, as for any friction.
    shape = "(1 - exp(-20 * dq({j}))) / (1 + exp(-20 * dq({j}))) + 0 * sign(dq({j}))"
    joints = {name: shape.format(j=name) for name in ("joint_1", "joint_2")}
    terms = ", ".join(f'{{name: Ft_{j}, joint: {j}, expression: "{text}"}}' for j, text in joints.items())
    plain = robot.replace("[Fv, Fs, Off]", "[Fv, Off]")
    (toys / "written.yaml").write_text(f"{plain}terms: [{terms}]\n")
    (toys / "toy.yaml").write_text(robot.replace("[Fv, Fs, Off]", "[Fv, Ft, Off]"))
    written = values(result("--robot", "written.yaml", "--log", "log.csv", out=tmp_path / "a"))
    found = values(result("--robot", "toy.yaml", "--log", "log.csv", out=tmp_path / "b"))
    assert found.keys() == written.keys()
    assert {"Ft_joint_1", "Ft_joint_2"} <= set(found)
    for name, value in written.items():
        # The same numbers but for the rounding of tanh by another formula.
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_code_without_the_function_of_another_package_does_not_list_its_parameters(
    toys: Path, tmp_path: Path
) -> None:
    (toys / "toy.yaml").write_text((toys / "arm.yaml").read_text().replace("[Fv, Fs, Off]", "[Fv, Ft, Off]"))
    found = values(result("--robot", "toy.yaml", "--log", "log.csv", out=tmp_path / "b"))
    done = dynid("export", str(tmp_path / "b"), "--to", "c", "numpy", "--out", str(tmp_path / "code"))
    assert done.exit_code == 0, done.output
    lost = json.loads((tmp_path / "code" / "export.json").read_text())["not_representable"]
    said = "calls a function of another package: it is left out"
    for code in ("c", "numpy"):
        told = [one for one in lost if one.startswith(f"{code}: term")]
        assert told == [f"{code}: term 'Ft_joint_{i}' {said}" for i in (1, 2)]
    for file in ("arm.c", "arm.h", "arm.py"):
        text = (tmp_path / "code" / file).read_text()
        assert "Left out: Ft_joint_1, Ft_joint_2" in text or file == "arm.h"
        body = text.replace("Left out: Ft_joint_1, Ft_joint_2", "")
        assert "Ft_" not in body
        assert all(name in body for name in found if not name.startswith("Ft_")) or file == "arm.c"


def test_friction_of_an_experiment_replaces_that_of_the_robot(toys: Path) -> None:
    from dynid.experiment.experiment import Experiment

    robot = load_robot("arm.yaml")
    asked = as_asked(robot, Experiment(robot=robot, drive=("Fv", "Ft")))
    assert [term.name for term in asked.terms] == ["Ft_joint_1", "Ft_joint_2"]
    assert as_asked(asked, Experiment(robot=robot, drive=("Fv", "Ft"))).terms == asked.terms
    assert as_asked(asked, Experiment(robot=robot, drive=("Fv",))).terms == ()
    (first, _) = asked.terms
    speed = np.array([-0.3, 0.0, 0.05])
    column = first.expression.evaluate({}, lambda kind, _: speed + 1j * _STEP * (kind == "dq"))
    np.testing.assert_allclose(column.real, np.tanh(speed / 0.1), rtol=1e-15)
    # Central differences with a step of 1e-6: the third derivative leaves 1e-10 of the slope.
    np.testing.assert_allclose(column.imag / _STEP, 10.0 / np.cosh(speed / 0.1) ** 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--robot", "arm.yaml", "--log", "log.zero"), "fails: ZeroDivisionError"),
        (("--robot", "arm.yaml", "--log", "log.text"), "gives str, not Table"),
        (("--robot", "arm.half", "--log", "log.csv"), "half written"),
        (("--robot", "arm.yaml", "--log", "log.csv", "--estimator", "half"), "half written"),
        (("--robot", "arm.yaml", "--log", "log.csv", "--estimator", "absent"), "no_such_name"),
    ],
)
def test_a_broken_plugin_is_a_message_with_its_package(
    toys: Path, arguments: tuple[str, ...], shown: str
) -> None:
    for name in ("log.zero", "log.text", "arm.half"):
        (toys / name).write_text("")
    done = dynid("identify", *arguments, "--out", "nowhere")
    assert done.exit_code == 2
    message = " ".join(done.output.split())
    assert shown in message
    assert "package 'toy-robots' 0.1" in message


def test_two_packages_of_one_name_are_a_conflict(toys: Path, tmp_path: Path) -> None:
    other = tmp_path / "rival-2.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 2.0\n")
    (other / "entry_points.txt").write_text("[dynid.estimators]\nplain = toys.failing:read\n")
    registry._installed.cache_clear()
    with pytest.raises(Exception, match=r"'toy-robots' 0.1 and package 'rival' 2.0|'rival' 2.0 and .*'toy-"):
        MAKERS["plain"]


def test_own_entries_need_no_look_at_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: tuple[str, ...]) -> None:
        raise AssertionError("other packages are read")

    monkeypatch.setattr(registry, "_installed", refuse)
    assert dynid("--help").exit_code == 0
    assert dynid("robots").exit_code == 0
    own = (READERS[".csv"], MAKERS["wls"], MODELS["inverse"], DESCRIPTIONS[".urdf"])
    assert all(own)
    assert "inverse" in MODELS


def test_every_check_has_a_question_and_exists() -> None:
    assert all(question.endswith("?") for question in CHECKS.built_in)
    assert all(callable(CHECKS[question]) for question in CHECKS.built_in)
