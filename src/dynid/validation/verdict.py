"""The verdict on a result: good, care or bad, the reasons in the order of their weight, and every joint.

Level of a joint: rms error on unseen motion beyond the noise floor, in percent of its peak effort. Level
of a result: the worst of its joints, of its warnings and of what its purpose asks. Causes are named before
symptoms: a wrong gravity before the large residuals that it leaves.

What a use asks of a result, and what is enough.

| purpose | asked |
|---|---|
| none | error on unseen motion up to 5 % of the peak effort: good; above 10 %: bad |
| feedforward | the same, 5 and 10 % |
| simulation | physically consistent; every base parameter excited and known |
| payload | mass within 5 %, centre of mass within 10 mm (95 % intervals; 1 mm and 1 mrad counted) |
| collision | error on unseen motion near the noise floor, and without bias |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from dynid.common.catalogue import Severity, codes_with
from dynid.common.change import Change, in_remedy
from dynid.common.notices import (
    SYMPTOMS,
    Notice,
    at_level,
    by_severity,
    cause_rank,
    gathered,
    notice,
    spoils_all,
)
from dynid.estimator.estimator import gives_bodies
from dynid.fit import Fit
from dynid.report.numbers import number, percent
from dynid.report.quality import peaks, unseen
from dynid.report.words import owner_of
from dynid.statistics.estimate import Estimate, ParameterEstimate
from dynid.statistics.estimate_parts import JointVerdict, Verdict, level_of, worst

HEADLINES = {"good": "Usable", "care": "Usable with care", "bad": "Do not use these parameters yet"}
_MOST_SHOWN = 3
_NOTHING = "no parameter could be determined"
# Warnings about the input itself: where predictions are poor too, they explain them.
_WRONG_INPUT = codes_with("wrong input")


def verdict_of(fit: Fit, estimate: Estimate, failure: str = "") -> Verdict:
    """Level, reasons and joints of a finished estimate.

    Args:
        fit: Where it comes from.
        estimate: With all its warnings, and its errors on unseen data, not yet judged.
        failure: Why it must not be published (gate, no convergence); empty if it may.
    """
    purpose = fit.experiment.purpose or ""
    judged_on = estimate.verdict.judged_on
    joints = tuple(_judged(joint_figure, purpose) for joint_figure in estimate.verdict.joints)
    poor = any(joint_figure.level != "good" for joint_figure in joints)
    reasons_of = [
        *_failed(failure or ("" if any(p.essential for p in estimate.parameters) else _NOTHING)),
        *(
            _reason(item, worst(joint.level for joint in joints))
            for item in gathered(estimate.warnings)
            if not _refuted(item, estimate, poor)
        ),
        *_poor_joints(joints, estimate.warnings),
        *missing_for(purpose, estimate),
    ]
    level = worst(
        [*(reason.level for reason in reasons_of), *(joint_figure.level for joint_figure in joints)]
    )
    reasons = _ordered([reason for reason in reasons_of if reason.level != "good"])
    if reasons and spoils_all(reasons[0]):
        joints = tuple(replace(joint, level="bad") for joint in joints)
    headline = _headline(level, purpose, joints, unseen(estimate), peaks(estimate))
    if level != "bad" and any(item.code == "scale-unchecked" for item in estimate.warnings):
        measured = peaks(estimate).removeprefix("peak ")
        headline += f"; the scale of the {measured} rests on the logs alone"
    return Verdict(level, headline, purpose, judged_on, reasons, joints)


def _judged(joint: JointVerdict, purpose: str) -> JointVerdict:
    return replace(joint, level=level_of(joint.error_percent, purpose))


def _reason(item: Notice, joints: str) -> Notice:
    """A warning as a reason; a wrong input is as bad as the predictions that it spoils."""
    return at_level(item, worst([item.level, joints])) if item.code in _WRONG_INPUT else item


def _refuted(note: Notice, estimate: Estimate, poor: bool) -> bool:
    """Weak parameters would spoil other motions: a validation log is one, and is predicted well."""
    independent = any(validation.independent for validation in estimate.validation)
    return note.code == "weak-parameters" and independent and not poor


def _failed(failure: str) -> Iterator[Notice]:
    if failure:
        yield notice("no-result", failure=failure)


def _poor_joints(joints: Sequence[JointVerdict], warnings: Sequence[Notice]) -> Iterator[Notice]:
    """Joints whose error on unseen motion is too large, in one reason, with bursts that may be the cause."""
    poor = sorted((row for row in joints if row.level != "good"), key=lambda row: -row.error_percent)
    if not poor:
        return
    shown = ", ".join(
        f"{row.name} {number(row.error, 2)} {row.unit} ({percent(row.error_percent)} % of its peak)"
        for row in poor[:_MOST_SHOWN]
    )
    more = f" and {len(poor) - _MOST_SHOWN} more" if len(poor) > _MOST_SHOWN else ""
    level = worst(row.level for row in poor)
    more += (bursts := _bursts(poor, warnings))
    if level == "care" and not bursts and (names := _weak_joints(poor, warnings)):
        remark = notice("joint-error", "weak", shown=shown, more=more, names=", ".join(names))
    elif level == "care":  # wrong columns or units are not predicted this well
        remark = notice("joint-error", "slight", shown=shown, more=more)
    else:
        remark = notice("joint-error", shown=shown, more=more)
    yield at_level(remark, level)


def _weak_joints(poor: Sequence[JointVerdict], warnings: Sequence[Notice]) -> list[str]:
    """Which of these joints have drive parameters that the logs determine poorly."""
    texts = (note.text for note in warnings if note.code == "weak-parameters")
    owners = {owner_of(name) for text in texts for name in re.findall(r"[^\s,]+", text)}
    return [row.name for row in poor if row.name in owners]


def _bursts(poor: Sequence[JointVerdict], warnings: Sequence[Notice]) -> str:
    """What is known of bursts in the residuals of these joints; empty without any that matter."""
    for note in warnings:
        places, _, outcome = note.text.partition("; ")
        named = set(re.findall(r"[^\s(),]+", places))
        hit = [row.name for row in poor if row.name in named]
        if note.code == "burst" and hit and note.severity is not Severity.NOTE:
            found = f"; the residual of {', '.join(hit)} has a burst (see burst)"
            return found + (f": {outcome}" if outcome else "")
    return ""


def _ordered(reasons: Sequence[Notice]) -> tuple[Notice, ...]:
    """The worse first; of one level, causes before symptoms, then the order of the warnings.

    The first cause is as bad as the worst symptom: it explains it.
    """
    ranked = sorted(reasons, key=lambda note: cause_rank(note.code))
    symptoms = [note.level for note in ranked if note.code in SYMPTOMS]
    if symptoms and cause_rank(ranked[0].code) < cause_rank("joint-error"):
        ranked[0] = at_level(ranked[0], worst([ranked[0].level, *symptoms]))
    return tuple(by_severity(ranked))


def _headline(level: str, purpose: str, joints: Sequence[JointVerdict], what: str, of: str) -> str:
    text = HEADLINES[level] + (f" for {purpose}" if purpose and level != "bad" else "")
    if level == "bad" or not joints:
        return text
    largest = max(joint.error_percent for joint in joints)
    text += f": rms error on {what} up to {max(largest, 0.1):.2g} % of the {of}"
    if level == "good":
        return text
    if all(joint.level == "good" for joint in joints):
        return f"{text}; read the reasons before you use single parameters"
    return f"{text}; read the reasons first"


_Lack = tuple[str, str | Change]  # what is missing; what to do, or a change of the experiment
_MASS_PERCENT, _COM_METRES = 5.0, 0.010
# A threshold for contacts is some times the residual without contact; a bias moves it.
_FLOOR_TIMES, _BIAS_PERCENT = 5.0, 1.0
_IMPOSSIBLE, _UNKNOWN = codes_with("impossible"), codes_with("unknown")


def missing_for(purpose: str, estimate: Estimate) -> Iterator[Notice]:
    """What a result lacks for its purpose, beyond the errors of the joints: reasons that it is bad."""
    for text, remedy in _ASKED.get(purpose, _nothing)(estimate):
        change = remedy if isinstance(remedy, Mapping) else {}
        shown = f"use {in_remedy(change)}" if change else remedy
        remark = notice("purpose-not-met", purpose=purpose, found=text, remedy=shown, change=change)
        yield at_level(remark, "bad")


def _nothing(estimate: Estimate) -> Iterator[_Lack]:
    return iter(())


def _simulation(estimate: Estimate) -> Iterator[_Lack]:
    codes = {warning.code for warning in estimate.warnings}
    # Consistent bodies hold at zero what the efforts contradict.
    if codes & _IMPOSSIBLE and not gives_bodies(estimate.estimator):
        yield "a simulation needs physically consistent parameters", {"estimator": "consistent"}
    if codes & _UNKNOWN:
        yield (
            "a simulation moves the robot in ways that these logs do not show",
            "excite the parameters that the warnings list",
        )


def _payload(estimate: Estimate) -> Iterator[_Lack]:
    loads = [p for p in estimate.parameters if p.name.startswith("M_") and _is_load(estimate, p.name)]
    if not loads:
        yield "no payload was identified", "declare the payload of a log: `payload:` in its entry"
    by_name = {p.name: p for p in estimate.parameters}
    for mass in loads:
        half = _half(estimate, mass)
        if half > _MASS_PERCENT / 100.0 * abs(mass.value):
            text = (
                f"{mass.name} = {mass.value:.3g} +- {half:.2g} kg is not known within {_MASS_PERCENT:.0f} %"
            )
            yield text, "excite the payload more, or weigh it and declare its mass"
        body = mass.name.removeprefix("M_")
        moments = [by_name.get(f"{symbol}_{body}") for symbol in ("MX", "MY", "MZ")]
        wide = [p for p in moments if p is not None and _half(estimate, p) > _COM_METRES * abs(mass.value)]
        if wide:
            names = ", ".join(p.name for p in wide)
            text = f"{names}: the centre of mass is not known within {1e3 * _COM_METRES:.0f} mm"
            yield text, "turn the payload into other directions of gravity"


def _collision(estimate: Estimate) -> Iterator[_Lack]:
    noisy = [
        row
        for row in estimate.verdict.joints
        if row.error_rms > _FLOOR_TIMES * row.noise_floor and row.error_percent > _BIAS_PERCENT
    ]
    if noisy:
        names = ", ".join(
            f"{row.name} ({row.error_rms:.2g} {row.unit}, noise {row.noise_floor:.2g})" for row in noisy[:3]
        )
        yield (
            f"the residual is far above the noise floor: {names}",
            "add friction terms, and check delay and filters; thresholds would have to be as large",
        )
    biased = [
        row
        for row in estimate.verdict.joints
        if row.bias is not None and 100.0 * abs(row.bias) > _BIAS_PERCENT * row.peak > 0.0
    ]
    if biased:
        names = ", ".join(f"{row.name} ({row.bias:.2g} {row.unit})" for row in biased[:3])
        yield f"the residual has a bias: {names}", "check offsets of the efforts, and payload and tool"


def _is_load(estimate: Estimate, name: str) -> bool:
    return f"load {name.removeprefix('M_')}" in estimate.choices


def _half(estimate: Estimate, parameter: ParameterEstimate) -> float:
    """Half width of an interval, with what 1 mm or 1 mrad of the description adds; infinite without one.

    No residual shows such an error. It is counted already where the description states a deviation.
    """
    if parameter.ci95 is None:
        return math.inf
    description = estimate.description
    effects = {} if description is None else description.per_thousandth.get(parameter.name, {})
    moved = (parameter.sigma or 0.0) * max(map(abs, effects.values()), default=0.0)
    return math.hypot(0.5 * (parameter.ci95[1] - parameter.ci95[0]), moved)


_ASKED: Mapping[str, Callable[[Estimate], Iterator[_Lack]]] = {
    "simulation": _simulation,
    "payload": _payload,
    "collision": _collision,
}
