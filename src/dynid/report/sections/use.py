"""Can I use it? The verdict, a light per joint, the first reasons, what to do next."""

from __future__ import annotations

from dynid.common.notices import LEVELS, by_severity
from dynid.report.page import Section, render
from dynid.report.quality import Quality, coverage, evidence, first_reasons, quality
from dynid.report.robot_view import robot_view
from dynid.statistics.estimate import Estimate

_USES = {
    "": "general use: predicting torques, feedforward",
    "feedforward": "feedforward control",
    "simulation": "simulation",
    "payload": "knowing the payload",
    "collision": "detecting collisions",
}
_FREE = "describing free motion on the cables"
_WORDS = {"good": "good", "care": "with care", "bad": "do not use"}


def section(estimate: Estimate) -> Section:
    """The verdict with its evidence, the robot, and the key values of the fit."""
    first, others = first_reasons(estimate)
    verdict = estimate.verdict
    free = estimate.fit.cost_C is not None
    worst = max(verdict.joints, key=lambda row: (LEVELS.index(row.level), row.error_percent), default=None)
    body = render(
        "use.html",
        estimate=estimate,
        verdict=verdict,
        purpose=_FREE if free and not verdict.purpose else _USES.get(verdict.purpose, verdict.purpose),
        free=free,
        words=_WORDS,
        worst=worst,
        evidence=evidence(estimate),
        zeros=sum(quality(p) is Quality.ZERO for p in estimate.parameters),
        first=first,
        others=others,
        steps=_steps(estimate),
        covered=coverage(estimate) if estimate.truth else None,
        filtered="low-pass on rows" in estimate.choices,
        robot=robot_view(estimate),
        warnings=by_severity(estimate.warnings),
    )
    return Section("use", "Can I use it?", body)


def _steps(estimate: Estimate) -> list[str]:
    """What to do next, most urgent first; with several reasons, each step names the one that it is for."""
    level, reasons = estimate.verdict.level, first_reasons(estimate)[0]
    numbers: dict[str, list[str]] = {}
    for k, one in enumerate(reasons, 1):
        if one.remedy:
            numbers.setdefault(one.remedy, []).append(str(k))
    several = len(reasons) > 1
    steps = [f"reason {' and '.join(own)}: {text}" if several else text for text, own in numbers.items()]
    if level == "bad":
        return [*steps, "identify again, and compare with `dynid compare`"]
    if not any(one.independent for one in estimate.validation):
        steps.append("record one more motion and give it with `--validate LOG`")
    export = "write the model for other programs: `dynid export RESULT --to FORMAT`"
    steps.append(export if level == "good" else f"if these limits do not matter for your use, {export}")
    return steps
