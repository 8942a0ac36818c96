"""What a use asks of a result, and what is enough.

| purpose | asked |
|---|---|
| none | error on unseen motion up to 5 % of the peak effort: good; above 10 %: bad |
| feedforward | the same, 5 and 10 % |
| simulation | physically consistent; every base parameter excited and known |
| payload | mass within 5 %, centre of mass within 10 mm (95 % intervals) |
| collision | error on unseen motion near the noise floor, and without bias |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from dynid.common.notices import Notice, at_level, notice
from dynid.statistics.estimate import Estimate

_MASS_PERCENT, _COM_METRES = 5.0, 0.010
# A threshold for contacts is some times the residual without contact; a bias moves it.
_FLOOR_TIMES, _BIAS_PERCENT = 5.0, 1.0
_IMPOSSIBLE = ("not-physical", "not-consistent", "negative-parameter")
_UNKNOWN = ("not-excited", "weak-parameters", "rank-undecided")


def missing_for(purpose: str, estimate: Estimate) -> Iterator[Notice]:
    """What a result lacks for its purpose, beyond the errors of the joints: reasons that it is bad."""
    for text, remedy in _ASKED.get(purpose, _nothing)(estimate):
        remark = notice("purpose-not-met", purpose=purpose, found=text, remedy=remedy)
        yield at_level(remark, "bad")


def _nothing(estimate: Estimate) -> Iterator[tuple[str, str]]:
    return iter(())


def _simulation(estimate: Estimate) -> Iterator[tuple[str, str]]:
    codes = {warning.code for warning in estimate.warnings}
    if codes & set(_IMPOSSIBLE):
        yield "a simulation needs physically consistent parameters", "use `estimator: consistent`"
    if codes & set(_UNKNOWN):
        yield (
            "a simulation moves the robot in ways that these logs do not show",
            "excite the parameters that the warnings list",
        )


def _payload(estimate: Estimate) -> Iterator[tuple[str, str]]:
    loads = [p for p in estimate.parameters if p.name.startswith("M_") and _is_load(estimate, p.name)]
    if not loads:
        yield "no payload was identified", "declare the payload of a log: `payload:` in its entry"
    by_name = {p.name: p for p in estimate.parameters}
    for mass in loads:
        half = _half(mass.ci95)
        if half > _MASS_PERCENT / 100.0 * abs(mass.value):
            text = (
                f"{mass.name} = {mass.value:.3g} +- {half:.2g} kg is not known within {_MASS_PERCENT:.0f} %"
            )
            yield text, "excite the payload more, or weigh it and declare its mass"
        body = mass.name.removeprefix("M_")
        moments = [by_name.get(f"{symbol}_{body}") for symbol in ("MX", "MY", "MZ")]
        wide = [p for p in moments if p is not None and _half(p.ci95) > _COM_METRES * abs(mass.value)]
        if wide:
            names = ", ".join(p.name for p in wide)
            text = f"{names}: the centre of mass is not known within {1e3 * _COM_METRES:.0f} mm"
            yield text, "turn the payload into other directions of gravity"


def _collision(estimate: Estimate) -> Iterator[tuple[str, str]]:
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


def _half(ci95: tuple[float, float] | None) -> float:
    """Half width of an interval; infinite without one."""
    return math.inf if ci95 is None else 0.5 * (ci95[1] - ci95[0])


_ASKED: Mapping[str, Callable[[Estimate], Iterator[tuple[str, str]]]] = {
    "simulation": _simulation,
    "payload": _payload,
    "collision": _collision,
}
