"""Data moves one way: a folder imports only folders before it; special cases have rooms of their own."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.long_tests import LONG
from tests.workspace import dynid

ROOT = Path(__file__).parents[1] / "src" / "dynid"
# Folders and top-level modules, in the order in which they may import each other.
ORDER = [
    "common",
    "mechanism",
    "motion",
    "kinematics",
    "regressor",
    "dynamics",
    "projection",
    "conditioning",
    "base",
    "estimator",
    "statistics",
    "report",
    "experiment",
    "problem_checks",
    "case",
    "info",
    "problem",
    "linear_fit",
    "log_pass",
    "realise",
    "unknown",
    "refinement",
    "fit",
    "checks",
    "prediction",
    "display",
    "unknowns",
    "validation",
    "exporters",
    "choice",
    "pipeline",
    "payload",
    "doctor",
    "robots",
    "excitation",
    "simulation",
    "cases",
    "campaign",
    "tasks",
    "extend",
    "studio",
    "commands",
    "cli",
    "__main__",
]
# Estimates and comparisons print themselves, and estimates predict logs (methods for users, which call the
# stages that do it); the reader of robots finds the files of the built-in ones, and the names of models.
EXCEPTIONS = {
    ("statistics/estimate.py", "report"),
    ("statistics/estimate.py", "prediction"),
    ("statistics/estimate.py", "problem"),
    ("statistics/estimate.py", "validation"),
    ("statistics/comparison.py", "report"),
    ("mechanism/load.py", "robots"),
    ("mechanism/robot_file/robot_file.py", "projection"),
}
MOST_CLASSES = 69  # it may only go down


@dataclass(frozen=True)
class Code:
    """What the tests ask of one file; one pass over its syntax tree finds all of it."""

    packages: set[str]  # second parts of all `dynid.x` imports that happen at run time, inside functions too
    loaded: set[str]  # modules imported when it is loaded, types aside
    names: set[str]  # used or imported
    constants: list[tuple[int, object]]  # with their lines
    compared: list[tuple[int, set[str], set[object]]]  # line, attributes, constants of each comparison
    asked: set[str]  # names in the second argument of `isinstance`


def modules_of(node: ast.AST) -> list[str]:
    """Modules of this package that a statement imports."""
    if isinstance(node, ast.ImportFrom) and node.module:
        names = [node.module] if node.module != "dynid" else [f"dynid.{one.name}" for one in node.names]
    else:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    return [name for name in names if name.startswith("dynid.")]


@cache
def code(file: Path) -> Code:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = Code(set(), set(), set(), [], [], set())
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dynid"):
            found.loaded.update([str(node.module), *(f"{node.module}.{one.name}" for one in node.names)])
    types_only = set()
    for node in ast.walk(tree):  # a block comes before what is in it
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            types_only |= {id(one) for one in ast.walk(node)}
        if id(node) not in types_only:
            found.packages.update(name.split(".")[1] for name in modules_of(node))
        found.names.add(getattr(node, "id", None) or getattr(node, "name", None) or "")
        if isinstance(node, ast.Constant):
            found.constants.append((node.lineno, node.value))
        elif isinstance(node, ast.Compare):
            parts = list(ast.walk(node))
            texts = {one.value for one in parts if isinstance(one, ast.Constant)}
            found.compared.append((node.lineno, {getattr(one, "attr", "") for one in parts}, texts))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            found.asked.update(getattr(one, "id", "") for one in ast.walk(node.args[1]))
    return found


def room(file: Path) -> str:
    """Folder of a file, or the name of a top-level module."""
    first = file.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


FILES = [file for file in sorted(ROOT.rglob("*.py")) if file != ROOT / "__init__.py"]


LONGEST_CHAIN = 17  # of modules that import each other when loaded; lower it with every shorter chain


def test_chains_of_imports_stay_short() -> None:
    """Who reads a module must read at most so many below it."""
    files = {".".join(("dynid", *file.relative_to(ROOT).with_suffix("").parts)): file for file in FILES}
    below = {name: code(file).loaded & set(files) for name, file in files.items()}

    @cache
    def chain(name: str) -> tuple[str, ...]:
        return (name, *max((chain(one) for one in below[name]), key=len, default=()))

    longest = max((chain(name) for name in files), key=len)
    assert len(longest) <= LONGEST_CHAIN, " > ".join(longest)


def test_every_folder_has_its_place() -> None:
    assert {room(file) for file in FILES} == set(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_a_folder_imports_only_folders_before_it(name: str) -> None:
    allowed = {*ORDER[: ORDER.index(name) + 1], "__version__"}
    for file in FILES:
        if room(file) != name:
            continue
        place = str(file.relative_to(ROOT))
        later = {one for one in code(file).packages - allowed if (place, one) not in EXCEPTIONS}
        assert not later, f"{place} imports {sorted(later)}"


def test_folders_name_the_registry_of_what_is_added_there() -> None:
    """A newcomer reads the docstring of a folder: what it names exists."""
    named = 0
    for folder in (file.parent for file in ROOT.rglob("__init__.py")):
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
        for name, place in re.findall(r"\b([A-Z_]{5,}) of `([\w/]+\.py)`", text):
            near, top = folder / place, ROOT / place.removeprefix("dynid/")
            assert f"\n{name}" in (near if near.exists() else top).read_text(encoding="utf-8"), (folder, name)
            named += 1
    assert named >= 8  # estimators, models, logs, descriptions, drive terms, sections, cases, unknowns


def test_models_are_registered_under_their_names() -> None:
    from dynid.projection.model import MODELS, MOUNTED, model_names

    assert all(model.name == name for name, model in MODELS.items())
    assert {model.name: model.key for model in MODELS.values() if model.key != model.name} == MOUNTED
    assert set(model_names()) == {model.key for model in MODELS.values()}


# What comes after a `System`. Test columns over the pose need the derivatives of each kind of rows.
AFTER_SYSTEM = (
    "base",
    "estimator",
    "statistics",
    "linear_fit",
    "log_pass",
    "realise",
    "refinement",
    "fit",
    "checks",
)
AFTER_SYSTEM += ("display", "validation", "pipeline", "payload", "report", "studio", "campaign")
# Rooms that name estimators as users do.
NAME_ESTIMATORS = ("experiment", "estimator", "choice")
KIND_OF_ROWS = {"checks/pose_columns.py", "statistics/tension.py"}


def test_after_the_system_no_code_knows_which_model_made_it() -> None:
    """No name of a model is compared, no class of its rows or registered model is used."""
    from dynid.projection.model import MODELS

    rows = {"TreeRows", "MovingRows", "EnergyRows", "InternalRows", "WrenchRows", "SensorRows", "MODELS"}
    for file in FILES:
        if room(file) not in AFTER_SYSTEM or str(file.relative_to(ROOT)) in KIND_OF_ROWS:
            continue
        assert not code(file).names & rows, f"{file}: {code(file).names & rows}"
        for line, names, texts in code(file).compared:
            assert not (texts & set(MODELS) and names & {"name", "key", "model"}), f"{file}:{line}"


def test_no_code_tests_the_kind_of_a_case_an_estimator_or_a_setting() -> None:
    """Data of contracts instead: no identity of a case, no sensor, no estimator by name."""
    from dynid.estimator.estimator import MAKERS

    more = ("case", "problem", "problem_checks", "unknowns", "prediction", "exporters")
    for file in FILES:
        assert "PLAIN" not in code(file).names or room(file) in ("case", "problem"), file
        if room(file) not in (*AFTER_SYSTEM, *more):
            continue
        for line, names, texts in code(file).compared:
            assert "force_sensor" not in names, f"{file}:{line}"
            named = texts & set(MAKERS) and "estimator" in names
            assert not named or room(file) in NAME_ESTIMATORS, f"{file}:{line}"
        assert not any(kind.endswith("Settings") for kind in code(file).asked), file


def test_drive_terms_are_asked_for_by_their_properties() -> None:
    """Only formats of other programs, compiled columns and simulated robots know a symbol."""
    from dynid.mechanism.drive_terms import DRIVE_SYMBOLS

    knowing = {"mechanism", "exporters", "dynamics", "simulation", "cases", "regressor"}
    # A servo's gain adds viscous friction; a choice compares viscous friction per direction.
    knowing_files = {"unknowns/servo.py", "choice/search.py"}
    for file in FILES:
        place = str(file.relative_to(ROOT))
        if room(file) in knowing or place in knowing_files:
            continue
        for line, value in code(file).constants:
            assert not (isinstance(value, str) and value in DRIVE_SYMBOLS), f"{place}:{line}"


def test_no_file_outgrows_its_idea() -> None:
    sizes = {file: len(file.read_text().splitlines()) for file in ROOT.rglob("*.py")}
    too_long = {str(file.relative_to(ROOT)): n for file, n in sizes.items() if n > 400}
    assert not too_long


def test_cases_are_registered_in_one_line_each() -> None:
    """Nothing outside its folder names a case, but the one line that registers it."""
    from dynid.case import CASES

    for case in CASES.built_in:
        lines = [
            line
            for file in FILES
            if room(file) != "cases"
            for line in file.read_text().splitlines()
            if f"dynid.cases.{case}" in line
        ]
        assert len(lines) == 1, lines


def test_plain_robots_need_no_special_case(tmp_path: Path) -> None:
    """With `cases/` and `unknowns/` unimportable, trees and closed robots are identified as ever."""
    names = ("ur5", "dualv")
    for name in names:
        log = str(tmp_path / f"{name}.csv")
        assert dynid("simulate", name, "--duration", "2", "--out", log).exit_code == 0
    program = f"""
import sys
class Closed:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("dynid.cases", "dynid.unknowns")):
            raise ImportError(name)
sys.meta_path.insert(0, Closed())
from dynid import identify
for name in {names}:
    assert len(identify(name, name + ".csv").parameters) > 20
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=300)


def test_long_tests_exist() -> None:
    for name in LONG:
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in (Path(__file__).parent / file).read_text(), name


def test_the_simplest_walk_needs_few_classes() -> None:
    """In a fresh process: nothing is cached or replaced, and no types are checked on the way."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.class_walk"],
        cwd=Path(__file__).parents[1],
        check=True,
        timeout=300,
        capture_output=True,
        text=True,
    )
    met = found.stdout.split()
    assert "dynid.validation.hypotheses.Hypothesis" in met  # causes are searched: the whole walk was taken
    assert len(met) <= MOST_CLASSES, met
