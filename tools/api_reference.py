"""The reference page of the public names: `python -m tools.api_reference > docs/reference/api.md`.

Every name of `dynid` is in one topic. Signatures and texts come from the code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import dynid
from dynid.statistics.by_name import ByName

TOPICS: dict[str, tuple[str, ...]] = {
    "Identify": ("identify", "Estimate", "Experiment", "FilterSettings", "read_experiment", "run_experiment"),
    "Robots and logs": (
        *("load_robot", "Mechanism", "describe", "read_log", "Log", "log_from_arrays", "log_from_columns"),
        *("write_log", "check", "Payload", "ForceSensor", "with_force_sensor", "Frame"),
        *("DynidError", "InputError", "NoResultError"),
    ),
    "Use and judge results": (
        *("read_result", "write_results", "validate_result", "verify", "predict_efforts", "PoseTrajectory"),
        *("export", "payload_from_torques", "Online", "compare_experiment", "compare_friction"),
        *("compare_results", "agreement"),
    ),
    "Before the robot moves": (
        *(
            "excite",
            "Excitation",
            "simulate",
            "Simulation",
            "MotionChoice",
            "Sensing",
            "rehearse",
            "RehearsalPlan",
        ),
        *("built_in_experiment", "demo_file", "read_demo", "random_motion", "simulate_log"),
        "simulate_sensor_log",
        *("run_plant", "plant_log", "PlantSettings"),
    ),
    "Cables": (
        *("LockedCables", "equilibria", "rest", "lengths_for", "modes", "free_motions", "locked"),
        *("assembly_of", "cable_shapes", "cable_jacobian"),
    ),
    "Tables of multibody programs": ("wrench_table", "write_wrench_table", "UniformAcceleration"),
    "The stages one by one": (
        *("prepare", "build_system", "structural_base", "base_system", "estimator_named"),
        *("covariance_of", "UncertaintySettings", "interval95"),
    ),
}

RETURNED: dict[str, tuple[str, ...]] = {
    "Identify": (
        *("statistics.estimate:ParameterEstimate", "statistics.estimate:Agreement"),
        *("statistics.estimate:GroupFit", "statistics.estimate:Validation"),
        *("statistics.estimate_parts:Verdict", "statistics.estimate_parts:JointVerdict"),
        *("common.notices:Notice", "statistics.correlation:NamedMatrix", "report.summary:Summary"),
        *("report.summary:Plots", "report.plots:Figure"),
    ),
    "Robots and logs": ("info:Info", "doctor.diagnosis:Diagnosis"),
    "Use and judge results": (
        *("report.seal:Verification", "prediction.predict:EffortPrediction", "exporters:Export"),
        *("prediction.online:OnlinePayload", "statistics.comparison:Comparison"),
        *("statistics.comparison:Line", "statistics.comparison:ParameterLine"),
        "validation.results:Agreement",
    ),
    "Before the robot moves": (
        *("excitation.excite:Excitation", "cases.free_motion.excitation:FreeExcitation"),
        *(
            "simulation.simulation:Simulated",
            "cases.free_motion.simulation:FreeSimulated",
            "simulation.sensors:Recording",
            "statistics.rehearsal:Rehearsal",
        ),
        *("simulation.demo:BuiltInExperiment", "robots.demo_file:Demo", "simulation.plant.run:PlantRun"),
        *("excitation.series:FourierMotion", "excitation.closed:ClosedMotion"),
    ),
    "Cables": (
        *("dynamics.statics:Equilibrium", "dynamics.statics:Mode", "dynamics.free_motion:FreeMotions"),
        *("kinematics.assembly:Assembly", "mechanism.cable:Cable", "mechanism.cable:CableShape"),
    ),
    "Tables of multibody programs": (
        "motion.body_table:TableLog",
        "motion.body_table:BodyTable",
    ),
    "The stages one by one": (
        *("problem:Problem", "projection.projection:System", "base.base:BaseSet", "base.system:BaseSystem"),
        *("estimator.estimator:Estimator", "statistics.sandwich:Spread"),
    ),
}  # classes that dynid makes: those of public functions, and what they consist of

_STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}

_HEAD = """# Python API

All public names, from their docstrings. Import them from `dynid` itself: `from dynid import identify`.
Names are loaded on first use. Classes that you only read, because dynid makes them, are under "Returned".
[Use it from Python](../howto/python.md) shows the most frequent ones at work.
"""


def page() -> str:
    """The page as Markdown."""
    return _HEAD + "".join(line for topic, names in TOPICS.items() for line in _topic(topic, names))


def _topic(topic: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"\n## {topic}\n"
    for name in names:
        yield from _entry(name, getattr(dynid, name))
    for place in RETURNED.get(topic, ()):
        module, name = place.split(":")
        if name not in names:
            yield from _entry(name, getattr(import_module(f"dynid.{module}"), name), "Returned: ")


def _entry(name: str, value: Any, kind: str = "") -> Iterator[str]:
    yield f"\n### {kind}{name}\n\n```text\n{_signature(name, value)}\n```\n\n{_text(value)}\n"
    if inspect.isclass(value):
        methods = list(_methods(value))
        if methods:
            yield "\n| method or property | |\n|---|---|\n" + "".join(methods)


def _methods(value: type) -> Iterator[str]:
    if issubclass(value, ByName):
        yield from _methods_of(ByName)
    yield from _methods_of(value)


def _methods_of(value: type) -> Iterator[str]:
    for name, member in vars(value).items():
        inner = getattr(member, "__func__", member)
        function = getattr(inner, "fget", None) or getattr(inner, "func", inner)
        if name.startswith("_") or not callable(function) or inspect.isclass(function):
            continue
        first = _first_sentence(inspect.getdoc(function))
        if first:
            yield f"| `{name}` | {first} |\n"


def _first_sentence(text: str | None) -> str:
    first = (text or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    return first.strip()


def _signature(name: str, value: Callable[..., Any]) -> str:
    """Names and defaults of the arguments, one line each if they do not fit on one."""
    if inspect.isclass(value) and issubclass(value, Exception) and "__init__" not in vars(value):
        return name  # made by dynid, not by callers
    entries = [_argument(one) for one in inspect.signature(value).parameters.values() if one.name != "self"]
    line = f"{name}({', '.join(entries)})"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {one},\n" for one in entries) + ")"


def _argument(one: inspect.Parameter) -> str:
    if one.default is one.empty:
        return f"{_STARS.get(one.kind.name, '')}{one.name}"
    default = repr(one.default)
    simple = len(default) <= 24 and " at 0x" not in default and not default.startswith("<")
    return f"{one.name}={default if simple else '...'}"


def _text(value: Any) -> str:
    """The docstring, with its sections as lists."""
    text = inspect.getdoc(value) or ""
    text = re.sub(r"^(Args|Arguments|Attributes|Returns|Raises|Yields):\n", r"\n**\1**\n\n", text, flags=re.M)
    lines: list[str] = []
    section = False
    for line in text.splitlines():
        if line.startswith("**"):
            section = True
        elif line and not line.startswith(" "):
            section = False
        entry = re.match(r"^    (\*{0,2}\w[\w, .*]*): (.*)$", line) if section else None
        if entry:
            lines.append(f"- `{entry[1]}`: {entry[2]}")
        elif section and line.startswith("    "):
            lines.append(
                "  " + line.strip() if lines and lines[-1].startswith(("- ", "  ")) else line.strip()
            )
        else:
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


if __name__ == "__main__":
    print(page(), end="")
