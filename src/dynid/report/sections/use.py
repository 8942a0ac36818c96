"""Can I use it? The verdict, a light per joint, the first reasons, what to do next."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath

from dynid.base.grouping import listed
from dynid.common.change import in_python
from dynid.common.notices import Notice, spoils_all
from dynid.report.corrected import (
    FILE,
    change_words,
    corrected_experiment,
    proposed_change,
    whole_change,
)
from dynid.report.numbers import number, percent, unit_text
from dynid.report.page import Section, render
from dynid.report.quality import (
    compared,
    consequences,
    coverage,
    findings,
    first_reasons,
    is_about,
    is_consequence,
    judged_on,
    unseen,
    worst_joint,
)
from dynid.report.robot_view import robot_view
from dynid.report.sections.predicts import without_tension
from dynid.report.sections.provenance import command_line
from dynid.report.sections.unknown import named_robot
from dynid.report.words import meanings
from dynid.statistics.estimate import Estimate
from dynid.statistics.estimate_parts import LIMITS, JointVerdict

_USES = {
    "": "predicting efforts (torques, forces), for example as feedforward",
    "feedforward": "feedforward control",
    "simulation": "simulation",
    "payload": "knowing the payload",
    "collision": "detecting collisions",
}
_KINDS = {
    "equation": "describing free motion on the cables",
    "reading": "removing the tool from the readings of the sensor",
    "power": "predicting the power of all motors together",
}
_OTHER_USE = {  # what cannot be exported
    "equation": "for kilograms, give the mass of the platform in the robot file (`known:`), identify again",
    "reading": "subtract the tool from the readings: `compensation.py`",
}
_WRITE = (
    "`dynid identify . --write-experiment again.yaml` writes the experiment file; change it, then run"
    " `dynid identify again.yaml`"
)
_OTHER_PURPOSES = "to use it for simulation, payloads or collision detection, have it judged for that"
_JUDGE_FILES = "`dynid identify . --for simulation --out ../simulation` (or `payload`, `collision`)"
_JUDGE = '`identify(..., purpose="simulation")` (or `"payload"`, `"collision"`)'
_SECTIONS = {"description": "Is the description right?", "logs": "Was the log good?"}
_RECORD = "record a motion"
_WORST = {"effort": "joint", "power": "error"}  # what is worst; else what is compared
_WORDS = {"good": "small", "care": "medium", "bad": "large"}  # errors


def section(estimate: Estimate) -> Section:
    """The verdict with its evidence, the robot, and the key values of the fit."""
    first, others = first_reasons(estimate)
    verdict = estimate.verdict
    kind, worst = compared(estimate), worst_joint(estimate)
    steps, by_hand = _steps(estimate)
    accepted = _go_on(estimate) if verdict.level == "care" and "`" not in steps[0] else ""
    spoiled = bool(verdict.reasons) and spoils_all(verdict.reasons[0])
    body = render(
        "use.html",
        verdict=verdict,
        purpose=_USES.get(verdict.purpose, verdict.purpose)
        if verdict.purpose
        else _KINDS.get(kind, _USES[""]),
        kind=kind,
        refused=not all(body["exported"] for body in estimate.bodies),
        counted=unseen(estimate),
        unit=verdict.joints[0].unit if len({joint.unit for joint in verdict.joints}) == 1 else "",
        words={**_WORDS, "bad": "input wrong"} if spoiled else _WORDS,
        limits=LIMITS.get(verdict.purpose, LIMITS[""]),
        spoiled=spoiled,
        worst=worst,
        headline=verdict.headline.partition(":")[0],  # the error is said of the worst joint
        worst_of=_WORST.get(kind, kind),
        suspect=worst is not None
        and worst.error_percent < max(joint.error_percent for joint in verdict.joints),
        worst_size=_size(worst, kind) if worst else "",
        alone=verdict.level == "care"
        and bool(first)
        and all(joint.level == "good" for joint in verdict.joints),
        scale=any(item.code == "scale-unchecked" for item in estimate.warnings),
        named=_named(estimate),
        judged_on=judged_on(estimate),
        motors=without_tension(estimate),
        impossible=verdict.level != "bad" and kind in ("effort", "power") and _impossible(estimate),
        unjudged=_unjudged(estimate),
        names=meanings(estimate.parameters),
        first=first,
        others=others,
        caused=all(is_consequence(estimate, reason) for reason in others),
        several=len(first) > 1 or bool(others),
        accepted=accepted,
        steps=steps if not accepted else [step for step in steps if not step.endswith(accepted)],
        by_hand=by_hand,
        commands=any("`dynid " in step for step in steps[1:]),
        corrected=corrected_experiment(estimate),
        corrected_file=FILE,
        covered=coverage(estimate) if estimate.truth else None,
        robot=robot_view(estimate),
        warnings=findings(estimate, "use")[0],
        elsewhere=[
            (home, words, warned)
            for home, words in _SECTIONS.items()
            for warned in [findings(estimate, home)[0]]
            if warned
        ],
        consequences=consequences(estimate),
    )
    return Section("use", "Can I use it?", body)


def _size(joint: JointVerdict, kind: str) -> str:
    """`model error 8.6 % of its peak effort (27 of 320 N m)`."""
    if not joint.error_percent:
        return "error below sensor noise"
    peak = f" of {number(joint.peak, 3)}" if joint.peak else ""
    size = f"{number(joint.error, 2)}{peak} {unit_text(joint.unit)}".rstrip()
    whole = "peak effort" if kind == "effort" else "peak"
    return f"model error {percent(joint.error_percent)} % of its {whole} ({size})"


def _unjudged(estimate: Estimate) -> bool:
    """Whether a usable result may be good for a use for which it was not judged."""
    verdict = estimate.verdict
    return not verdict.purpose and verdict.level != "bad" and compared(estimate) in ("effort", "power")


def _impossible(estimate: Estimate) -> bool:
    return any(item.code == "not-physical" for item in (*estimate.verdict.reasons, *estimate.warnings))


def _named(estimate: Estimate) -> dict[str, str]:
    """Effort -> `reason 1`: those that a reason names, however well they are predicted."""
    reasons = list(enumerate(first_reasons(estimate)[0], 1))
    found = {
        joint.name: [str(k) for k, reason in reasons if is_about(reason, joint)]
        for joint in estimate.verdict.joints
    }
    return {
        name: f"reason{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
        for name, numbers in found.items()
        if numbers
    }


def _steps(estimate: Estimate) -> tuple[list[str], list[str]]:
    """What to do next, most urgent first; with several reasons, each step names the one that it is for.

    Then how to make by hand the changes that the corrected experiment has.
    """
    level, reasons = estimate.verdict.level, first_reasons(estimate)[0]
    numbers: dict[str, list[str]] = {}
    for k, cause in enumerate(reasons, 1):
        if cause.remedy:
            remedy = _with_numbers(cause.remedy, reasons)
            if remedy.startswith(_RECORD) and level != "bad" and compared(estimate) in ("effort", "power"):
                design = f"`dynid excite {named_robot(estimate)} --after . --period 20`"
                remedy += f"; {design} designs one" if not any(design in step for step in numbers) else ""
            numbers.setdefault(remedy, []).append(str(k))
    several = len(reasons) > 1
    runs = corrected_experiment(estimate)
    changed = proposed_change(estimate)[1] if runs else ()
    steps, by_hand = list[str](), list[str]()
    for text, indices in numbers.items():
        named = f"reason {' and '.join(indices)}"
        if not runs:
            steps.append(f"{named}: {text}" if several else text)
        elif any(str(k) in indices for k in changed):
            by_hand.append(f"{named}: {text}" if several else text)
        else:
            steps.append(f"if {named} remains: {text}")
    if runs:
        steps.insert(0, _run_corrected(estimate, changed if several else ()))
    again = "" if runs else _again(estimate, steps)
    if again == f"identify again: {_WRITE}" and "experiment file" in steps[0]:  # the first step needs it
        steps[0] += f": {_WRITE}"
    elif again or (level == "bad" and not runs):
        steps.append(again or "identify again")
    if level == "bad":
        return steps, by_hand
    if not any(prediction.independent for prediction in estimate.validation):
        steps.append("record one more motion and predict it: `dynid validate . LOG`")
    export = _go_on(estimate)
    if level != "good":
        export = (
            f"if {'these reasons do' if several else 'this reason does'} not matter for your use, {export}"
        )
    judge = _JUDGE_FILES if _from_files(estimate) else _JUDGE
    asked = [f"{_OTHER_PURPOSES}: {judge}"] if _unjudged(estimate) else []
    return [*steps, _OTHER_USE.get(compared(estimate), export), *asked], by_hand


def _go_on(estimate: Estimate) -> str:
    """How to use the result as it is."""
    if not all(body["exported"] for body in estimate.bodies):
        if not _from_files(estimate):
            return "identify again with `estimator: consistent` to export a model"
        return (
            "find physically possible parameters, which can be exported:"
            " `dynid identify . --estimator consistent --out ../consistent`"
        )
    if estimate.verdict.purpose == "simulation":
        return "write the model for a simulator: `dynid export . --to urdf` (or `mjcf`, `sdf`, ...)"
    return "write the model as code: `dynid export . --to c` (or `numpy`, ...; `urdf` for other programs)"


def _run_corrected(estimate: Estimate, numbers: Sequence[int]) -> str:
    """The first step where the experiment is corrected: check, and run it."""
    many = len(numbers) > 1
    everywhere = "columns" in proposed_change(estimate)[0] and len(estimate.provenance.get("inputs", ())) > 1
    logs = " in all logs" if everywhere else ""
    what = f"reasons {listed([str(k) for k in numbers])} are" if many else "this reason is"
    return (
        f"check on the robot that {what} right; then identify again with"
        f" {'these corrections' if many else 'this correction'}{logs}{change_words(estimate)}:"
        f" `dynid identify {FILE} --out ../corrected`"
    )


def _with_numbers(remedy: str, reasons: Sequence[Notice]) -> str:
    """A remedy that names other reasons by their numbers on the page, not by their codes."""
    for k, reason in enumerate(reasons, 1):
        remedy = remedy.replace(f"(reason {reason.code})", f"(reason {k})")
    return remedy


def _from_files(estimate: Estimate) -> bool:
    """Whether commands can read the logs of a result again."""
    return all(source.get("sha256") for source in estimate.provenance.get("inputs", ()))


def _again(estimate: Estimate, steps: list[str]) -> str:
    """How to identify with the change that is proposed: a command to paste; empty if none is."""
    if not _from_files(estimate):
        given = estimate.provenance.get("asked", {}).get("columns", {})
        change = in_python(whole_change(proposed_change(estimate)[0], given))
        return f"identify again with this change: `identify(..., {change})`" if change else ""
    if any(word in step for step in steps for word in ("experiment file", "`logs:`", "`columns: ")):
        return f"identify again: {_WRITE}"
    return _repeated(estimate) if any("robot file" in step for step in steps) else ""


def _repeated(estimate: Estimate) -> str:
    """How to identify again with a changed robot file: the same command, where one wrote this page."""
    robot = PurePath(named_robot(estimate))
    command = command_line(sys.argv)
    if robot.suffix not in (".yaml", ".yml"):
        source = f", which starts with `source: {robot}`" if robot.suffix else ""
        return f"write a robot file of your own{source}; identify again with it"
    again = f", with the same command where it was run before: `{command}`" if command else ""
    return f"after this change of `{robot}`, identify again{again}"
