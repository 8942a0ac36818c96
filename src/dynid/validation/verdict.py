"""The verdict on a result: good, care or bad, the reasons in the order of their weight, and every joint.

Level of a joint: rms error on unseen motion beyond the noise floor, in percent of its largest effort. Level
of a result: the worst of its joints, of its warnings and of what its purpose asks. Causes are named before
symptoms: a wrong gravity before the large residuals that it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dynid.common.notices import SYMPTOMS, Notice, at_level, by_severity, cause_rank, notice, spoils_all
from dynid.fit import Fit
from dynid.report.quality import peaks
from dynid.statistics.estimate import Estimate
from dynid.statistics.verdict import LIMITS, JointVerdict, Verdict, worst
from dynid.validation.purpose import missing_for

HEADLINES = {"good": "Usable", "care": "Usable with care", "bad": "Do not use these parameters yet"}
_MOST_SHOWN = 3
_NOTHING = "no parameter could be determined"
# Warnings about the input itself: where predictions are poor too, they explain them.
_WRONG_INPUT = frozenset(
    {
        "angles-large",
        "lengths-large",
        "gravity-off",
        "constant-effort",
        "loop-misfit",
        "assembly-jump",
        "friction-missing",
    }
)


def judge_result(fit: Fit, estimate: Estimate, failure: str = "") -> Verdict:
    """Level, reasons and joints of a finished estimate.

    Args:
        fit: Where it comes from.
        estimate: With all its warnings, and its errors on unseen data, not yet judged.
        failure: Why it must not be published (gate, no convergence); empty if it may.
    """
    purpose = fit.experiment.purpose or ""
    judged_on = estimate.verdict.judged_on
    joints = tuple(_judged(one, purpose) for one in estimate.verdict.joints)
    poor = any(one.level != "good" for one in joints)
    found = [
        *_failed(failure or ("" if any(p.essential for p in estimate.parameters) else _NOTHING)),
        *(
            _reason(one, worst(joint.level for joint in joints))
            for one in gathered(estimate.warnings)
            if not _refuted(one, estimate, poor)
        ),
        *_poor_joints(judged_on, joints),
        *missing_for(purpose, estimate),
    ]
    level = worst([*(one.level for one in found), *(one.level for one in joints)])
    reasons = _ordered([one for one in found if one.level != "good"])
    if reasons and spoils_all(reasons[0]):
        joints = tuple(replace(joint, level="bad") for joint in joints)
    headline = _headline(level, purpose, joints, peaks(estimate))
    return Verdict(level, headline, purpose, judged_on, reasons, joints)


def _judged(joint: JointVerdict, purpose: str) -> JointVerdict:
    good, bad = LIMITS[purpose]
    level = "good" if joint.error_percent <= good else "care" if joint.error_percent <= bad else "bad"
    return replace(joint, level=level)


def _reason(one: Notice, joints: str) -> Notice:
    """A warning as a reason; a wrong input is as bad as the predictions that it spoils."""
    return at_level(one, worst([one.level, joints])) if one.code in _WRONG_INPUT else one


def _refuted(note: Notice, estimate: Estimate, poor: bool) -> bool:
    """Weak parameters would spoil other motions: a validation log is one, and is predicted well."""
    independent = any(validation.independent for validation in estimate.validation)
    return note.code == "weak-parameters" and independent and not poor


def gathered(notices: Sequence[Notice]) -> list[Notice]:
    """One notice per code: the first, with the texts of the others."""
    by_code: dict[str, list[Notice]] = {}
    for note in notices:
        by_code.setdefault(note.code, []).append(note)
    return [
        replace(same[0], text="; ".join(dict.fromkeys(n.text for n in same))) for same in by_code.values()
    ]


def _failed(failure: str) -> Iterator[Notice]:
    if failure:
        yield notice("no-result", failure=failure)


def _poor_joints(judged_on: str, joints: Sequence[JointVerdict]) -> Iterator[Notice]:
    """Joints whose error on unseen motion is too large, in one reason."""
    poor = sorted((row for row in joints if row.level != "good"), key=lambda row: -row.error_percent)
    if not poor:
        return
    shown = ", ".join(
        f"{row.name} {row.error_rms:.3g} {row.unit} rms ({row.error_percent:.3g} % of its peak beyond noise)"
        for row in poor[:_MOST_SHOWN]
    )
    more = f" and {len(poor) - _MOST_SHOWN} more" if len(poor) > _MOST_SHOWN else ""
    remark = notice("joint-error", judged_on=judged_on, shown=shown, more=more)
    yield at_level(remark, worst(row.level for row in poor))


def _ordered(reasons: Sequence[Notice]) -> tuple[Notice, ...]:
    """The worse first; of one level, causes before symptoms, then the order of the warnings.

    The first cause is as bad as the worst symptom: it explains it.
    """
    ranked = sorted(reasons, key=lambda note: cause_rank(note.code))
    symptoms = [note.level for note in ranked if note.code in SYMPTOMS]
    if symptoms and cause_rank(ranked[0].code) < cause_rank("joint-error"):
        ranked[0] = at_level(ranked[0], worst([ranked[0].level, *symptoms]))
    return tuple(by_severity(ranked))


def _headline(level: str, purpose: str, joints: Sequence[JointVerdict], of: str) -> str:
    text = HEADLINES[level] + (f" for {purpose}" if purpose and level != "bad" else "")
    if level == "good" and joints:
        largest = max(joint.error_percent for joint in joints)
        text += f": unseen motion is predicted within {max(largest, 0.1):.2g} % of the {of}, beyond noise"
    return text
