"""Files of an exciting motion: trajectory, the whole run, coefficients, JSON and a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import to_builtins

from dynid.common.arrays import Array, Float
from dynid.common.notices import LEVELS, by_severity
from dynid.display.scene import tip_of
from dynid.excitation.export import (
    CONTROLLERS,
    SampledTrajectory,
    controller_file,
    run_csv,
    trajectory_csv,
    trajectory_ros2,
)
from dynid.excitation.optimal.checked import DENSER, PROMISED_BY
from dynid.excitation.optimal.families import SplineMotion
from dynid.excitation.optimal.figures import (
    body_path,
    gain_figure,
    joint_figure,
    path_figure,
    spectrum_figure,
    spread_figure,
    use_figure,
)
from dynid.excitation.optimal.paths import RobotStates
from dynid.excitation.random_motion import PointToPoint
from dynid.excitation.series import FourierMotion
from dynid.excitation.view import run_view
from dynid.report.json_file import json_text, plain
from dynid.report.numbers import number
from dynid.report.output import claimed_folder, replace_folder
from dynid.report.page import scripted_page

if TYPE_CHECKING:
    from dynid.excitation.excite import Excitation

SCHEMA = "dynid.excitation/1"
FILES = (
    "trajectory.csv",
    "run.csv",
    "coefficients.yaml",
    "joint_trajectory.ros2.yaml",
    "excitation.json",
    "report.html",
)
OTHERS = tuple(one.file for one in CONTROLLERS.values())
_CHECK_RATE = 200.0  # Hz: distances along the run
_ROS_RATE = 100.0  # Hz: controllers interpolate between points


def write_excitation(found: Excitation, folder: Path) -> None:
    """Write all files into `folder` atomically; only an older motion is replaced."""
    with claimed_folder(folder, (*FILES, *OTHERS)) as path:
        replace_folder(path, excitation_files(found))


def excitation_files(
    found: Excitation, controllers: Sequence[str] = (), controller_rate: float | None = None
) -> dict[str, str]:
    """Name -> text; with the run in the formats of these controllers, at their rate in [Hz]."""
    sampled = SampledTrajectory(found.names, found.t, found.q, found.dq, found.ddq)
    step = max(1, round(found.rate / _ROS_RATE))
    rows = np.unique(np.append(np.arange(0, len(found.t), step), len(found.t) - 1))
    thinned = SampledTrajectory(found.names, *(x[rows] for x in (found.t, found.q, found.dq, found.ddq)))
    texts = (
        trajectory_csv(sampled),
        run_csv(found.run.sampled(found.rate)),
        coefficients_yaml(found),
        trajectory_ros2(thinned),
        json_text(excitation_document(found)),
        report_page(found),
    )
    more = [controller_file(found.run, controller, controller_rate, found.rate) for controller in controllers]
    return dict(zip(FILES, texts, strict=True)) | dict(more)


def excitation_document(found: Excitation) -> dict[str, Any]:
    """The content of `excitation.json`."""
    values = np.array([start.value for start in found.starts])
    finite = values[np.isfinite(values)]
    better = np.sort(-finite if found.larger_is_better else finite)
    better = -better if found.larger_is_better else better
    return {
        "schema": SCHEMA,
        "robot": found.robot,
        "criterion": found.criterion,
        "criterion_name": found.settings.criterion,
        "larger_is_better": found.larger_is_better,
        "seed": found.settings.seed,
        "spread": {
            "best": better[0],
            "median": float(np.median(finite)),
            "worst": better[-1],
            "kept": len(finite),
        },
        "starts": [
            plain({key: value for key, value in asdict(start).items() if key != "z"})
            for start in found.starts
        ],
        "settings": plain(to_builtins(found.settings)),
        "rate": found.rate,
        "assumed": found.assumed,
        "noise": dict(zip(_motors(found), found.plan_noise, strict=True)),
        "moved": list(found.moved),
        "run": {
            "home": dict(zip(found.moved, found.run.home.tolist(), strict=True)),
            "duration": found.run.duration,
            "parts": [{"segment": part.mark, "duration": part.duration} for part in found.run.parts],
        },
        "collision": collision_document(found),
        "limits": [plain(asdict(limit)) for limit in found.limits],
        "parameters": [
            plain(
                {
                    "name": name,
                    "unit": unit,
                    "sigma_before": before,
                    "sigma_after": after,
                    "gain": before / after,
                }
            )
            for name, unit, before, after in zip(
                found.base_names, found.base_units, found.before.sigma, found.after.sigma, strict=True
            )
        ],
        "condition": plain({"before": found.before.condition, "after": found.after.condition}),
        "condition_scaled": plain(
            {"before": found.before.condition_scaled, "after": found.after.condition_scaled}
        ),
        "singular_values": plain({"before": found.before.singular, "after": found.after.singular}),
        "warnings": [asdict(notice) for notice in found.notices],
        "versions": {name: version(name) for name in ("dynid", "numpy", "scipy", "numba")},
    }


def collision_document(found: Excitation) -> dict[str, Any]:
    """What was checked along the whole run, and the smallest distances, in [m]."""
    check = found.plan.check
    near = check.nearest(_whole(found))
    return {
        "checked": bool(check.limits),
        "floor": check.floor,
        "smallest": near,
        "assumed": list(check.assumed),
        "touching": sorted(check.touching),
    }


def collision_words(found: Excitation) -> str:
    """The smallest distances as a sentence; empty if nothing is checked."""
    parts = [
        f"{number(float(gap['distance']), 3)} m between {gap['between']}"
        if key == "bodies"
        else f"{number(float(gap['distance']), 3)} m between {gap['between']} and the floor"
        for key, gap in found.plan.check.nearest(_whole(found)).items()
    ]
    return f" Smallest distance along the run: {', '.join(parts)}." if parts else ""


def _whole(found: Excitation) -> RobotStates:
    """The robot along the whole run."""
    return found.run.states(found.run.times(min(found.rate, _CHECK_RATE)))


def coefficients_yaml(found: Excitation) -> str:
    """Coefficients of the family per coordinate, named as in its formula."""
    motion = found.plan.family.motion(found.coefficients)
    lines = [
        "# dynid.coefficients/1",
        f"robot: {found.robot}",
        f"family: {found.settings.family}",
        f"period: {found.plan.family.period!r}",
    ]
    if isinstance(motion, FourierMotion):
        lines.append(
            "# q(t) = centre + sum_l (sine_l sin(l w t) - cosine_l cos(l w t)) / (l w), w = 2 pi / period"
        )
        columns = {"centre": motion.centre[None], "sine": motion.sine, "cosine": motion.cosine}
    else:
        meaning = (
            "points of rest, equal times between them"
            if found.settings.family == "points"
            else ("control points of a clamped quintic B-spline over equal pieces")
        )
        lines.append(f"# points: {meaning}")
        columns = {
            "points": motion.points if isinstance(motion, SplineMotion | PointToPoint) else found.coefficients
        }
    lines.append("coordinates:")
    for j, name in enumerate(found.moved):
        parts = ", ".join(
            f"{key}: [{', '.join(repr(float(x)) for x in values[:, j])}]" for key, values in columns.items()
        )
        lines.append(f"  - {{name: '{name}', {parts}}}")
    return "\n".join(lines) + "\n"


def summary(found: Excitation) -> str:
    """The result in a few sentences."""
    random = found.starts[found.best].random
    gain = _gain(found)
    return (
        f"{found.settings.criterion} {number(found.criterion, 6)} (initial random motion:"
        f" {number(random, 6)}). {_searched(found)} Compared with the best of"
        f" ten random motions, the median sigma {gain}, and the condition"
        f" number with unit columns changes from {number(found.before.condition_scaled, 3)} to"
        f" {number(found.after.condition_scaled, 3)}. Sigma assumes {found.assumed}."
        f"{collision_words(found)}"
    )


def _searched(found: Excitation) -> str:
    """How many starts were searched further, and what they reached."""
    searched = [start for start in found.starts if not start.dropped]
    values = [start.value for start in searched if np.isfinite(start.value)]
    text = f"{len(found.starts)} starts"
    if len(searched) < len(found.starts):
        text += f", of which the best {len(searched)} after a first descent were searched further"
    lost = len(searched) - len(values)
    text += f" ({lost} without a motion that satisfies all limits)" if lost else ""
    return f"{text}: values from {number(min(values), 6)} to {number(max(values), 6)}."


def _gain(found: Excitation) -> str:
    """Reduction of the median sigma; random motions may leave parameters undetermined."""
    before, after = found.before.sigma, found.after.sigma
    lost = int(np.sum(np.isinf(before) & np.isfinite(after)))
    both = np.isfinite(before) & np.isfinite(after)
    gain = float(np.median(before[both] / after[both])) if both.any() else np.nan
    text = f"is {number(gain, 3)} times smaller" if np.isfinite(gain) else "cannot be compared"
    return text + (f" ({lost} parameters are determined only by this motion)" if lost else "")


def report_page(found: Excitation) -> str:
    """One self-contained page."""
    plan = found.plan
    level, headline = motion_words(found)
    t = np.linspace(0.0, plan.family.period, 801)
    states = plan.states(np.array(found.starts[found.best].z), t)
    q = plan.own(states)[0] if states is not None else np.zeros((0, len(plan.mechanism.positions)))
    tip = tip_of(plan.mechanism)
    rows = [
        {"name": name, "unit": unit, "before": before, "after": after, "gain": before / after}
        for name, unit, before, after in zip(
            found.base_names, found.base_units, found.before.sigma, found.after.sigma, strict=True
        )
    ]
    limits = [f"{limit.name}: {limit.kind}" for limit in found.limits]
    promised = PROMISED_BY.get(plan.mechanism.model, "inverse")
    model = f", identified by the model {promised}" if promised != "inverse" else ""
    return scripted_page(
        "excitation.html",
        ("robot.js",),
        found=found,
        name=found.robot,
        warnings=by_severity(found.notices),
        words=summary(found),
        level=level,
        headline=headline,
        facts=_facts(found),
        gain=f"the median sigma {_gain(found)}",
        spectrum=spectrum_figure(found.before.singular, found.after.singular),
        gains=gain_figure(found.base_names, found.before.sigma, found.after.sigma),
        uses=use_figure(limits, np.array([limit.margin_percent for limit in found.limits])),
        spread=spread_figure(
            np.array([start.value for start in found.starts]),
            np.array([start.first for start in found.starts]),
        ),
        joints=joint_figure(
            found.names, found.t, (found.q, found.dq, found.ddq), _unit(found), _efforts(found)
        ),
        path=path_figure(tip, body_path(plan.mechanism, q, tip)),
        robot=run_view(found),
        rows=rows,
        denser=DENSER,
        noise=", ".join(
            f"{name} {number(value, 3)}" for name, value in zip(_motors(found), found.plan_noise, strict=True)
        ),
        model=model,
    )


def motion_words(found: Excitation) -> tuple[str, str]:
    """`good`, `care` or `bad`, and whether the motion may run, in one sentence."""
    level = max((notice.level for notice in found.notices), key=LEVELS.index, default="good")
    if level == "good":
        return level, "The motion keeps all limits"
    count = sum(notice.level != "good" for notice in found.notices)
    warnings = f"{count} warning{'s' * (count > 1)}"
    return level, f"The motion keeps its limits, but read {warnings} before it runs"


def _facts(found: Excitation) -> list[tuple[str, str, str]]:
    """Label, value and remark of what a reader wants to know before the robot moves."""
    tight = min(found.limits, key=lambda one: one.margin_percent)
    run = found.run
    facts = [
        ("duration of the run", f"{number(run.duration, 3)} s", ", ".join(part.mark for part in run.parts)),
        ("tightest limit", f"{number(tight.margin_percent, 2)} % margin", f"{tight.kind} of {tight.name}"),
    ]
    titles = {"bodies": "smallest distance of two bodies", "floor": "smallest distance to the floor"}
    near = found.plan.check.nearest(_whole(found))
    for key, title in titles.items():
        if key in near:
            distance = f"{number(1e3 * float(near[key]['distance']), 3)} mm"
            facts.append((title, distance, str(near[key]["between"])))
        else:
            facts.append((title, "not checked", ""))
    return facts


def _unit(found: Excitation) -> str:
    """Unit of the measured positions."""
    kinds = {name: joint.kind for joint in found.plan.mechanism.joints for name in joint.positions}
    units = {
        {"prismatic": "m", "revolute": "rad", "universal": "rad"}.get(kinds.get(name, ""), "rad or m")
        for name in found.names
    }
    return units.pop() if len(units) == 1 else "rad or m"


def _efforts(found: Excitation) -> tuple[tuple[str, ...], Float[Array, "n k"]] | None:
    """Motor efforts predicted by the prior model; None without one."""
    plan = found.plan
    states = plan.states(np.array(found.starts[found.best].z), found.t)
    if plan.efforts is None or states is None:
        return None
    motors = set(_motors(found))
    at = [k for k, name in enumerate(plan.path.rows) if name in motors]
    return tuple(plan.path.rows[k] for k in at), plan.efforts.efforts(states)[:, at]


def _motors(found: Excitation) -> list[str]:
    return [actuator.name for actuator in found.plan.mechanism.actuators]
