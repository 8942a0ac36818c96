"""The command line: exit codes, messages, files, and how little it loads."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import dynid.experiment.experiment
import dynid.experiment.file  # before parts of the library are replaced
from dynid.cli import main
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice, notice
from dynid.experiment.experiment import Experiment, LogEntry
from dynid.report.output import write_results
from tests.fabricated import estimate

_INFO = SimpleNamespace(
    name="two_link",
    dof=2,
    n_bodies=2,
    n_joints=2,
    n_actuators=2,
    n_closures=0,
    n_standard=20,
    n_base=4,
    base=[SimpleNamespace(name="ZZ_a_R", unit="kg m^2", grouping="ZZ_a_R = ZZ_a + d2^2 M_b")],
    eliminated=["XX_a", "MZ_b"],
    grouped=["M_b"],
    notices=(Notice("snapped", "1.5708 taken for pi/2"),),
)


@pytest.fixture
def library(monkeypatch, tmp_path):
    """Stand-ins for the library; `calls` keeps what the commands handed over."""
    monkeypatch.chdir(tmp_path)
    calls = SimpleNamespace(jobs=[], outcome=estimate(), described=[])

    def run(problem, progress=None, show=None):
        calls.jobs.append(problem)
        progress("reading", 0.5)
        if isinstance(calls.outcome, BaseException):
            raise calls.outcome
        return calls.outcome

    def describe(mechanism, **options):
        calls.described.append(options)
        return _INFO

    parts = {
        "dynid.pipeline": {
            "run_experiment": run,
            "validate_result": lambda result, logs, robot, payloads, **_: (estimate().validation, ()),
        },
        "dynid.info": {"describe": describe},
        "dynid.mechanism.load": {
            "load_robot": lambda robot: robot,
            "builtin_robots": lambda: {"serial6": "six joints", "ur": "a UR-like arm"},
        },
        "dynid.simulation.demo": {"run_demo": run},
    }
    monkeypatch.setattr(
        dynid.experiment.experiment,
        "read_experiment",
        lambda path: Experiment(robot=f"of {path}", name=path.stem),
    )
    for name, content in parts.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return calls


def _run(*arguments: str):
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_demo_writes_a_result_and_shows_every_parameter_on_request(library):
    done = _run("demo", "serial6")
    assert done.exit_code == 0
    assert sorted(p.name for p in Path("results/serial6").iterdir()) == [
        "parameters.csv",
        "report.html",
        "result.json",
        "signals.csv",
    ]
    assert "XY_link2_R" not in done.stdout
    assert "XY_link2_R" in _run("demo", "serial6", "--full").stdout
    assert "written: results/serial6" in done.stdout


def test_robots_lists_names(library):
    assert _run("robots").stdout.splitlines() == ["serial6  six joints", "ur       a UR-like arm"]


def test_info_as_text(library):
    text = _run("info", "two_link").stdout
    assert "2 degrees of freedom, 2 bodies, 2 joints, 2 actuators, 0 closures" in text
    assert "ZZ_a_R           kg m^2   ZZ_a + d2^2 M_b" in text
    assert "XX_a, MZ_b" in text
    assert text.startswith("! snapped")


def test_info_as_json(library):
    document = json.loads(_run("info", "two_link", "--json").stdout)
    names = "name dof n_bodies n_joints n_actuators n_closures n_standard n_base base eliminated grouped"
    assert list(document) == [*names.split(), "notices"]
    assert document["base"][0] == {"name": "ZZ_a_R", "unit": "kg m^2", "grouping": "ZZ_a_R = ZZ_a + d2^2 M_b"}


def test_info_hands_its_options_over(library):
    _run("info", "r", "--drive", "none", "--tie", "legs", "--payload", "p", "--open", "--bodies", "a, b")
    given = library.described[0]
    assert given == {
        "drive": (),
        "ties": ("legs",),
        "payloads": ("p",),
        "open_loops": True,
        "bodies": ("a", "b"),
    }


def test_identify_from_a_file_with_flags_over_it(library):
    assert _run("identify", "my/arm.yaml", "--estimator", "ols").exit_code == 0
    assert library.jobs[0] == Experiment(robot="of my/arm.yaml", estimator="ols", name="arm")
    assert Path("results/arm/result.json").is_file()


def test_identify_from_flags(library):
    logs = ("--log", "a.csv", "--log", "b.csv", "--validate", "c.csv")
    done = _run("identify", "--robot", "my/ur.urdf", *logs, "--model", "inverse", "--out", "here")
    assert done.exit_code == 0
    problem = library.jobs[0]
    assert (problem.robot, problem.model, problem.estimator, problem.name) == (
        "my/ur.urdf",
        "inverse",
        "wls",
        "ur",
    )
    assert problem.logs == (LogEntry("a.csv"), LogEntry("b.csv"))
    assert problem.validate == (LogEntry("c.csv"),)
    assert Path("here/report.html").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ("identify",),
        ("identify", "a.yaml", "--robot", "ur"),
        ("identify", "a.yaml", "--log", "x.csv"),
        ("identify", "--robot", "ur"),
        ("identify", "--robot", "ur", "--log", "a.csv", "--model", "invers"),
        ("identify", "--robot", "ur", "--log", "a.csv", "--estimator", "magic"),
        ("validate", "results/arm"),
        ("nonsense",),
    ],
)
def test_wrong_usage_is_exit_2(library, arguments):
    assert _run(*arguments).exit_code == 2
    assert not Path("results").exists()


def test_refused_input_is_exit_2_and_writes_nothing(library):
    library.outcome = InputError("column 'q_7' is unknown", file="a.csv", place="line 1", remedy="rename it")
    done = _run("identify", "arm.yaml")
    assert done.exit_code == 2
    assert "a.csv, line 1: column 'q_7' is unknown" in done.stderr
    assert "remedy: rename it" in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("results").exists()


def test_no_result_is_exit_3(library):
    library.outcome = NoResultError("not converged")
    assert _run("identify", "arm.yaml").exit_code == 3
    assert not Path("results").exists()


def test_no_result_saves_what_was_found(library):
    library.outcome = NoResultError("not converged")
    library.outcome.estimate = estimate()
    done = _run("identify", "arm.yaml")
    assert done.exit_code == 3
    assert Path("results/arm/result.json").is_file()
    # The remedies stand in the warnings, and the folder must be found.
    assert "remedy: mount a known payload" in done.output
    assert "saved for inspection: results/arm" in done.output


def _out_of_compiled_code() -> SystemError:
    """What an interrupt becomes when it lands where compiled code hands its result to Python."""
    outer, inner = SystemError("dispatcher"), SystemError("unpickle")
    outer.__cause__, inner.__cause__ = inner, KeyboardInterrupt()
    return outer


@pytest.mark.parametrize(
    "interrupt", [KeyboardInterrupt(), _out_of_compiled_code()], ids=["plain", "compiled"]
)
def test_interrupt_is_exit_130(library, interrupt):
    library.outcome = interrupt
    done = _run("identify", "arm.yaml")
    assert done.exit_code == 130
    assert "interrupted" in done.stderr
    assert not Path("results").exists()


def test_a_defect_is_not_taken_for_an_interrupt(library):
    library.outcome = SystemError("a defect")
    with pytest.raises(SystemError, match="a defect"):
        _run("identify", "arm.yaml")


def test_file_system_errors_are_exit_2(library):
    library.outcome = PermissionError(13, "Permission denied", "a.csv")
    done = _run("identify", "arm.yaml")
    assert done.exit_code == 2
    assert "a.csv" in done.stderr


def test_a_result_that_is_replaced_is_named(library):
    sources = [{"file": f"runs/{name}.csv", "use": "identify"} for name in "abcde"]
    library.outcome = replace(estimate(), provenance={"inputs": sources})
    assert "replaced" not in _run("identify", "arm.yaml").stdout
    (line,) = [text for text in _run("identify", "arm.yaml").stdout.splitlines() if "replaced" in text]
    assert line.startswith("replaced: result of 20")
    assert "(care, a.csv, b.csv, c.csv, 2 more)" in line
    assert line.endswith("--out FOLDER keeps both")
    (result,) = Path("results").glob("*/result.json")
    result.write_text(result.read_text()[:300])  # damaged: no reason not to replace it
    assert "replaced: result of 20" in _run("identify", "arm.yaml").stdout


def test_validate_writes_beside_the_result(library):
    write_results(estimate(), "results/arm")
    done = _run("validate", "results/arm/result.json", "other.csv")
    assert done.exit_code == 0
    document = json.loads(Path("results/arm/validation.json").read_text())
    assert document["schema"] == "dynid.validation/1"
    assert document["validation"][0]["effort_percent"] == 6.87
    assert _run("validate", "results/arm", "other.csv", "--out", "elsewhere").exit_code == 0
    assert Path("elsewhere/validation.json").is_file()
    path = Path("results/arm/validation.json")
    assert "instead of" not in _run("validate", "results/arm", "other.csv").stdout
    path.write_text(json.dumps(document | {"validation": [{"log": "earlier"}]}))
    assert (
        "instead of the validation on earlier; --out keeps both"
        in _run("validate", "results/arm", "x.csv").stdout
    )
    assert _run("identify", "arm.yaml").exit_code == 0  # a validation does not bar a new result
    assert not Path("results/arm/validation.json").exists()


def test_a_log_that_must_not_be_used_ends_validation_with_3(library, monkeypatch):
    write_results(estimate(), "results/arm")
    poor = notice("poor-prediction", percent=50.0, worst="J2", compared="")
    bad = replace(estimate().validation[0], warnings=(poor,))
    monkeypatch.setattr(sys.modules["dynid.pipeline"], "validate_result", lambda *_, **__: ((bad,), ()))
    done = _run("validate", "results/arm", "other.csv")
    assert done.exit_code == 3
    assert "model error 50 % of the peak (J2)" in done.stdout
    assert Path("results/arm/validation.json").is_file()  # written all the same, as by identify


def test_version():
    assert "dynid" in _run("--version").stdout


_HEAVY = {"numpy", "scipy", "numba", "pandas", "rich", "jinja2"}
# Packages of single steps of the flow are imported there.
_OF_STEPS = {"scipy", "numba", "pyarrow", "rich", "ruamel.yaml", "clarabel"}


@pytest.mark.parametrize(
    ("program", "not_loaded"),
    [
        ("from dynid.cli import main; main(['--help'])", _HEAVY),
        ("import dynid, dynid.cli", _HEAVY),
        ("import dynid.pipeline", _OF_STEPS),
    ],
)
def test_start_is_light(program, not_loaded):
    code = (
        f"import sys\ntry:\n    {program}\nexcept SystemExit:\n    pass\n"
        f"heavy = {not_loaded!r} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("arguments", "code"), [(["robots"], 0), (["info", "no such robot"], 2)])
def test_a_process_leaves_with_the_code_and_all_output_of_its_command(arguments, code):
    """Functions that packages register for the end run before it leaves."""
    program = (
        "import atexit, dynid.__main__, dynid.cli\n"
        "main = dynid.cli.main\n"
        "def speak(**options):\n"
        "    atexit.register(print, 'last words')\n"
        "    main(**options)\n"
        "dynid.cli.main = speak\n"
        "dynid.__main__.run()"
    )
    run = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    printed = _run(*arguments)
    assert (done.returncode, done.stdout) == (code, printed.stdout + "last words\n")


def test_public_names_are_there():
    import dynid

    assert dynid.__version__
    for name in ("read_result", "load_robot", "identify", "Experiment", "Mechanism", "Estimate"):
        assert getattr(dynid, name).__name__ == name
        assert name in dir(dynid)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = dynid.nonsense


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("demo s", ["scara", "serial6", "stewart"]),
        ("check pan", ["panda", "panther.urdf"]),
        ("identify --robot own/", ["own/"]),  # the shell looks for files itself
        ("export result --to mj", ["mjcf"]),
        ("identify --estimator ro", ["robust"]),
        ("identify --model w", ["wrench"]),
        ("identify --for co", ["collision"]),
        ("simulate ur5 --engine m", ["mujoco"]),
        ("excite ur5 --for-controller k", ["krl"]),
    ],
)
def test_a_shell_completes_values_too(tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "panther.urdf").touch()
    *given, incomplete = words.split()
    found = ShellComplete(main, {}, "dynid", "_DYNID_COMPLETE").get_completions(given, incomplete)
    assert [item.value for item in found] == expected


def test_an_interrupt_while_the_command_loads_is_no_traceback():
    program = """
import sys
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "dynid.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from dynid.__main__ import run
run()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "error: interrupted: nothing was changed; run the same command again\n"
