"""Files of an exciting motion: trajectory, the whole run, coefficients, JSON and a report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.notices import LEVELS, by_severity
from dynid.common.versions import version_of
from dynid.display.scene import tip_of
from dynid.excitation.export import (
    CONTROLLERS,
    SampledTrajectory,
    check_controllers,
    controller_file,
    run_csv,
    trajectory_csv,
)
from dynid.excitation.optimal.checked import DENSER
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
from dynid.mechanism.parameters import effort_units
from dynid.projection.model import MODELS
from dynid.report.json_file import json_text, plain
from dynid.report.numbers import number, plural
from dynid.report.output import claimed_folder, replace_folder
from dynid.report.page import scripted_page

if TYPE_CHECKING:
    from dynid.excitation.excite import Excitation

SCHEMA = "dynid.excitation/1"
FILES = (
    "trajectory.csv",
    "run.csv",
    "coefficients.yaml",
    CONTROLLERS["ros2"].file,
    "excitation.json",
    "report.html",
)
_EARLIER = "joint_trajectory.ros2.yaml"  # without approach; a folder of an earlier version is replaced
OTHERS = (_EARLIER, *(controller.file for controller in CONTROLLERS.values()))
_CHECK_RATE = 200.0  # Hz: distances along the run


def excitation_files(
    excitation: Excitation, controllers: Sequence[str] = (), controller_rate: float | None = None
) -> dict[str, str]:
    """Name -> text; with the run in formats of controllers, at a rate in [Hz] (None: usual for each)."""
    sampled = SampledTrajectory(excitation.names, excitation.t, excitation.q, excitation.dq, excitation.ddq)
    texts = (
        trajectory_csv(sampled),
        run_csv(excitation.run.sampled(excitation.rate)),
        coefficients_yaml(excitation),
        controller_file(excitation.run, "ros2", None, excitation.rate)[1],
        json_text(excitation_document(excitation)),
        report_page(excitation),
    )
    more = [
        controller_file(excitation.run, controller, controller_rate, excitation.rate)
        for controller in controllers
    ]
    return dict(zip(FILES, texts, strict=True)) | dict(more)


def save_motion(
    excitation: Excitation,
    folder: str | os.PathLike[str],
    controllers: Sequence[str],
    controller_rate: float | None,
) -> None:
    """Write these files into a folder; only an older motion there is replaced."""
    check_controllers(controllers, controller_rate, excitation.plan.mechanism)
    with claimed_folder(os.fspath(folder), (*FILES, *OTHERS)) as path:
        replace_folder(path, excitation_files(excitation, controllers, controller_rate))


def excitation_document(designed: Excitation) -> dict[str, Any]:
    """The content of `excitation.json`."""
    values = np.array([start.value for start in designed.starts])
    finite = values[np.isfinite(values)]
    better = np.sort(-finite if designed.larger_is_better else finite)
    better = -better if designed.larger_is_better else better
    return {
        "schema": SCHEMA,
        "robot": designed.robot,
        "criterion": designed.criterion,
        "criterion_name": designed.settings.criterion,
        "larger_is_better": designed.larger_is_better,
        "seed": designed.settings.seed,
        "spread": {
            "best": better[0],
            "median": float(np.median(finite)),
            "worst": better[-1],
            "kept": len(finite),
        },
        "starts": [
            plain({key: value for key, value in asdict(start).items() if key != "z"})
            for start in designed.starts
        ],
        "settings": plain(designed.settings.of_search),
        "rate": designed.rate,
        "assumed": designed.assumed,
        "noise": dict(zip(_motors(designed), designed.plan_noise, strict=True)),
        "moved": list(designed.moved),
        "run": {
            "home": dict(zip(designed.moved, designed.run.home.tolist(), strict=True)),
            "duration": designed.run.duration,
            "parts": [{"part": part.mark, "duration": part.duration} for part in designed.run.parts],
        },
        "collision": collision_document(designed),
        "limits": [plain(asdict(limit)) for limit in designed.limits],
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
                designed.base_names,
                designed.base_units,
                designed.before.sigma,
                designed.after.sigma,
                strict=True,
            )
        ],
        "condition": plain({"before": designed.before.condition, "after": designed.after.condition}),
        "condition_scaled": plain(
            {"before": designed.before.condition_scaled, "after": designed.after.condition_scaled}
        ),
        "singular_values": plain({"before": designed.before.singular, "after": designed.after.singular}),
        "warnings": [asdict(notice) for notice in designed.notices],
        "versions": {name: version_of(name) for name in ("dynid", "numpy", "scipy", "numba")},
    }


def collision_document(excitation: Excitation) -> dict[str, Any]:
    """What was checked along the whole run, and the smallest distances, in [m]."""
    check = excitation.plan.check
    near = check.nearest(_whole(excitation))
    return {
        "checked": bool(check.limits),
        "floor": check.floor.height,
        "floor_assumed": check.floor.assumed,
        "smallest": near,
        "assumed": list(check.shaped.assumed),
        "touching": sorted(check.touching),
    }


def collision_words(excitation: Excitation) -> str:
    """The smallest distances as a sentence; empty if nothing is checked."""
    parts = [
        f"{number(1e3 * float(gap['distance']), 3)} mm between {gap['between']}"
        + (" and the floor" if key == "floor" else "")
        for key, gap in excitation.plan.check.nearest(_whole(excitation)).items()
    ]
    return f"Smallest distance along the run: {', '.join(parts)}." if parts else ""


def _whole(excitation: Excitation) -> RobotStates:
    """The robot along the whole run."""
    return excitation.run.states(excitation.run.times(min(excitation.rate, _CHECK_RATE)))


def coefficients_yaml(excitation: Excitation) -> str:
    """Coefficients of the family per coordinate, named as in its formula."""
    motion = excitation.plan.family.motion(excitation.coefficients)
    lines = [
        "# dynid.coefficients/1",
        f"robot: {excitation.robot}",
        f"family: {excitation.settings.family}",
        f"period: {excitation.plan.family.period!r}",
    ]
    if isinstance(motion, FourierMotion):
        lines.append(
            "# q(t) = centre + sum_l (sine_l sin(l w t) - cosine_l cos(l w t)) / (l w), w = 2 pi / period"
        )
        columns = {"centre": motion.centre[None], "sine": motion.sine, "cosine": motion.cosine}
    else:
        meaning = (
            "points of rest, equal times between them"
            if excitation.settings.family == "points"
            else ("control points of a clamped quintic B-spline over equal pieces")
        )
        lines.append(f"# points: {meaning}")
        columns = {
            "points": motion.points
            if isinstance(motion, SplineMotion | PointToPoint)
            else excitation.coefficients
        }
    lines.append("coordinates:")
    for j, name in enumerate(excitation.moved):
        parts = ", ".join(
            f"{key}: [{', '.join(repr(float(x)) for x in values[:, j])}]" for key, values in columns.items()
        )
        lines.append(f"  - {{name: '{name}', {parts}}}")
    return "\n".join(lines) + "\n"


def summary(excitation: Excitation) -> str:
    """The result in a few lines."""
    random = excitation.starts[excitation.best].random
    gain = _gain(excitation)
    lines = (
        f"Compared with the best of ten random motions, the median sigma {gain}; the condition number with"
        f" unit columns changes from {number(excitation.before.condition_scaled, 3)} to"
        f" {number(excitation.after.condition_scaled, 3)}.",
        f"Sigma assumes {excitation.assumed}.",
        f"{excitation.settings.criterion} {number(excitation.criterion, 6)} (initial random motion:"
        f" {number(random, 6)}). {_searched(excitation)}",
        collision_words(excitation),
        f"The run begins and ends at rest at {_rest(excitation)}.",
    )
    return "\n".join(line for line in lines if line)


def _rest(excitation: Excitation) -> str:
    """The pose at which the run begins, in [rad] or [m], as `--home` takes it, with the coordinates."""
    pose = ",".join(number(value, 3) for value in excitation.run.home.tolist())
    return f"{pose} ({', '.join(excitation.moved)})"


def _searched(excitation: Excitation) -> str:
    """How many starts were searched further, and what they reached."""
    searched = [start for start in excitation.starts if not start.dropped]
    values = [start.value for start in searched if np.isfinite(start.value)]
    text = plural(len(excitation.starts), "start")
    if len(searched) < len(excitation.starts):
        text += f", of which the best {len(searched)} after a first descent were searched further"
    lost = len(searched) - len(values)
    text += f" ({lost} without a motion that satisfies all limits)" if lost else ""
    return f"{text}: values from {number(min(values), 6)} to {number(max(values), 6)}."


def _gain(excitation: Excitation) -> str:
    """Reduction of the median sigma; random motions may leave parameters undetermined."""
    before, after = excitation.before.sigma, excitation.after.sigma
    lost = int(np.sum(np.isinf(before) & np.isfinite(after)))
    both = np.isfinite(before) & np.isfinite(after)
    gain = float(np.median(before[both] / after[both])) if both.any() else np.nan
    text = f"is {number(gain, 3)} times smaller" if np.isfinite(gain) else "cannot be compared"
    return text + (f" ({lost} parameters are determined only by this motion)" if lost else "")


def report_page(designed: Excitation) -> str:
    """One self-contained page."""
    plan = designed.plan
    level, headline = motion_words(designed)
    t = np.linspace(0.0, plan.family.period, 801)
    states = plan.states(np.array(designed.starts[designed.best].z), t)
    q = plan.robot_motion(states)[0] if states is not None else np.zeros((0, len(plan.mechanism.positions)))
    tip = tip_of(plan.mechanism)
    rows = [
        {"name": name, "unit": unit, "before": before, "after": after, "gain": before / after}
        for name, unit, before, after in zip(
            designed.base_names, designed.base_units, designed.before.sigma, designed.after.sigma, strict=True
        )
    ]
    limits = [f"{limit.name}: {limit.kind}" for limit in designed.limits]
    promised = MODELS[plan.mechanism.model].promised_by
    model = f", identified by the model {promised}" if promised != "inverse" else ""
    return scripted_page(
        "excitation.html",
        ("robot.js",),
        found=designed,
        name=designed.robot,
        warnings=by_severity(designed.notices),
        words=summary(designed),
        level=level,
        headline=headline,
        facts=_facts(designed),
        gain=f"the median sigma {_gain(designed)}",
        spectrum=spectrum_figure(designed.before.singular, designed.after.singular),
        gains=gain_figure(designed.base_names, designed.before.sigma, designed.after.sigma),
        uses=use_figure(limits, np.array([limit.margin_percent for limit in designed.limits])),
        spread=spread_figure(
            np.array([start.value for start in designed.starts]),
            np.array([start.first for start in designed.starts]),
        ),
        joints=joint_figure(
            designed.names,
            designed.t,
            (designed.q, designed.dq, designed.ddq),
            _unit(designed),
            _efforts(designed),
            effort_units(plan.mechanism),
        ),
        path=path_figure(tip, body_path(plan.mechanism, q, tip)),
        robot=run_view(designed),
        rows=rows,
        denser=DENSER,
        noise=", ".join(
            f"{name} {number(value, 3)}"
            for name, value in zip(_motors(designed), designed.plan_noise, strict=True)
        ),
        model=model,
    )


def motion_words(excitation: Excitation) -> tuple[str, str]:
    """`good`, `care` or `bad`, and whether the motion may run, in one sentence."""
    level = max((notice.level for notice in excitation.notices), key=LEVELS.index, default="good")
    if level == "good":
        return level, "The motion keeps all limits"
    count = sum(notice.level != "good" for notice in excitation.notices)
    warnings = f"{count} warning{'s' * (count > 1)}"
    return level, f"The motion keeps its limits, but read {warnings} before it runs"


def _facts(excitation: Excitation) -> list[tuple[str, str, str]]:
    """Label, value and remark of what a reader wants to know before the robot moves."""
    tight = min(excitation.limits, key=lambda usage: usage.margin_percent)
    run = excitation.run
    facts = [
        ("duration of the run", f"{number(run.duration, 3)} s", ", ".join(part.mark for part in run.parts)),
        ("tightest limit", f"{number(tight.margin_percent, 2)} % margin", f"{tight.kind} of {tight.name}"),
    ]
    titles = {"bodies": "smallest distance of two bodies", "floor": "smallest distance to the floor"}
    check = excitation.plan.check
    near = check.nearest(_whole(excitation))
    for key, title in titles.items():
        if key in near:
            distance = f"{number(1e3 * float(near[key]['distance']), 3)} mm"
            remark = "; its height is assumed" if key == "floor" and check.floor.assumed else ""
            facts.append((title, distance, str(near[key]["between"]) + remark))
        else:
            facts.append((title, "not checked", ""))
    return facts


def _unit(excitation: Excitation) -> str:
    """Unit of the measured positions."""
    kinds = {name: joint.kind for joint in excitation.plan.mechanism.joints for name in joint.positions}
    units = {
        {"prismatic": "m", "revolute": "rad", "universal": "rad"}.get(kinds.get(name, ""), "rad or m")
        for name in excitation.names
    }
    return units.pop() if len(units) == 1 else "rad or m"


def _efforts(excitation: Excitation) -> tuple[tuple[str, ...], Float[Array, "n k"]] | None:
    """Motor efforts predicted by the prior model; None without one."""
    plan = excitation.plan
    states = plan.states(np.array(excitation.starts[excitation.best].z), excitation.t)
    if plan.efforts is None or states is None:
        return None
    motors = set(_motors(excitation))
    at = [k for k, name in enumerate(plan.path.rows) if name in motors]
    return tuple(plan.path.rows[k] for k in at), plan.efforts.efforts(states)[:, at]


def _motors(excitation: Excitation) -> list[str]:
    return [actuator.name for actuator in excitation.plan.mechanism.actuators]
