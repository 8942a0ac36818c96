"""Other packages extend dynid: a toy of every kind, registered as a package would, used by the commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.checks import CHECKS
from dynid.common import registry
from dynid.estimator.estimator import MAKERS
from dynid.mechanism.load import DESCRIPTIONS, load_robot
from dynid.mechanism.parameters import jumping_coordinates, parameter_table
from dynid.mechanism.variant import with_friction
from dynid.motion.logs import READERS
from dynid.problem import as_asked
from dynid.projection.model import MODELS
from dynid.regressor.adjoint import _STEP
from dynid.report.json_file import read_result
from dynid.statistics.friction import curves_of
from dynid.validation.causes import with_causes
from tests.workspace import dynid, make_workspace

# Files of the package; each toy is what a user would write.
TOYS = {
    "reader": """
import numpy as np
from dynid.extend import Table

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
from dynid.extend import Estimator, unit_weights

def make():
    return Estimator("plain", "all rows alike", unit_weights)
""",
    "model": """
from dynid.extend import Model, power_directions, rows_of, structural_factor

WORK = Model("work", "rate of work", power_directions, rows_of, structural_factor, case="noted")
""",
    "case": """
from dynid.extend import Case

class Noted(Case):
    def recorded(self, fit, standard):
        return fit.experiment, standard, {"toy.txt": f"fitted by {fit.problem.model.name}"}

NOTED = Noted()
""",
    "unknown": """
from dynid.extend import Settled, Unknown

def settle(task):
    return Settled(task, {"toy scale": "0.1 rad/s"})

SCALE = Unknown(settle, in_robot=lambda robot: any(term.friction == "Ft" for term in robot.terms))
""",
    "section": """
from markupsafe import Markup
from dynid.extend import Section

def section(estimate):
    return Section("toy", "Which robot is it?", Markup("<p>{}</p>").format(estimate.robot))
""",
    "correction": """
from dataclasses import replace
from dynid.extend import Correction, Hypothesis, Notice

def spring(mechanism, logs, tests):
    freed = tuple(replace(log, tau=log.tau - 10 * log.q**3) for log in logs)
    yield Hypothesis(Notice("toy-spring", "springs act", "remove them"), mechanism, freed, "springs")

SPRING = Correction(spring)
""",
    "check": """
from dynid.extend import Notice

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
    "drag": """
import numpy as np
from dynid.extend import DriveTerm

DRAG = DriveTerm("drag", ("N m s^2/rad^2", "N s^2/m^2"), lambda v, a, load, s: v * np.abs(v))
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
Fd = toys.drag:DRAG
[dynid.cases]
noted = toys.case:NOTED
[dynid.unknowns]
scale = toys.unknown:SCALE
[dynid.sections]
toy = toys.section:section
[dynid.corrections]
springs = toys.correction:SPRING
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, made before the package of toys is installed."""
    return make_workspace(tmp_path_factory.mktemp("plugins"))


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


def test_a_model_with_its_case_and_a_section(toys: Path, tmp_path: Path) -> None:
    options = ("--robot", "arm.yaml", "--log", "log.csv", "--model")
    assert values(result(*options, "work", out=tmp_path / "toy")) == values(
        result(*options, "power", out=tmp_path / "own")
    )
    assert (tmp_path / "toy" / "toy.txt").read_text() == "fitted by work"
    assert "Which robot is it?" in (tmp_path / "toy" / "report.html").read_text()


def test_a_test_of_the_description(toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is fitted where the logs contradict the description, and ranked among dynid's own."""
    names, *rows = (line.split(",") for line in (toys / "log.csv").read_text().split())
    columns = dict(zip(names, np.array(rows, float).T, strict=True))
    for i in ("1", "2"):
        columns[f"tau_{i}"] += 10 * columns[f"q_{i}"] ** 3
    lines = [
        ",".join(names),
        *(",".join(map(repr, row)) for row in np.array(list(columns.values())).T.tolist()),
    ]
    (toys / "springs.csv").write_text("\n".join(lines))
    monkeypatch.setattr("dynid.pipeline.with_causes", with_causes)  # most tests do without
    dynid("identify", "--robot", "arm.yaml", "--log", "springs.csv", "--out", str(tmp_path / "springs"))
    document = json.loads((tmp_path / "springs" / "result.json").read_text())
    assert document["description"]["hypotheses"][0]["name"] == "springs"
    assert "toy-spring" in [one["code"] for one in document["warnings"]]


def test_a_drive_term_is_known_like_the_own_ones(toys: Path, tmp_path: Path) -> None:
    """Unit, sign, words, friction curve and masks follow from the data of the term."""
    (toys / "drag.yaml").write_text(
        (toys / "arm.yaml").read_text().replace("[Fv, Fs, Off]", "[Fv, Fs, Fd, Off]")
    )
    robot = load_robot("drag.yaml")
    drag = next(one for one in parameter_table(robot) if one.name == "Fd_joint_2")
    assert (drag.unit, drag.owner, drag.symbol, drag.positive) == ("N m s^2/rad^2", "joint_2", "Fd", True)
    smooth = with_friction(replace(robot, drive={}), {"joint_1": ("Fd",), "joint_2": ("Ft",)})
    assert jumping_coordinates(smooth) == {"joint_2"}  # of a function alone nothing is known: it may jump
    document = result("--robot", "drag.yaml", "--log", "log.csv", out=tmp_path / "drag")
    assert {"Fd_joint_1", "Fd_joint_2"} <= set(values(document))
    curves = curves_of(read_result(tmp_path / "drag" / "result.json"), reach=2.0)
    assert set(curves[0]["terms"]) == {"Fv", "Fs", "Fd", "Off"}
    assert "drag" in (tmp_path / "drag" / "report.html").read_text()


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
    document = result("--robot", "toy.yaml", "--log", "log.csv", out=tmp_path / "b")
    assert "toy scale" in document["choices"]  # the unknown that belongs to this term
    found = values(document)
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
    # Without its friction the code predicts four times as badly as the estimate.
    assert done.exit_code == 3, done.output
    assert "NOT USABLE" in done.output
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
