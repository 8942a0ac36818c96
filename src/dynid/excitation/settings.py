"""Default assumptions about a recording: sampling rate, effort noise and encoder resolution of a robot.

`excite` (predicted sigma), `simulate` and `rehearse` (achieved sigma) all use these defaults. So
prediction and outcome differ only by chance and by the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.excitation.careful import effort_placeholders, needed_efforts
from dynid.excitation.efforts import effort_range
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.report.numbers import number
from dynid.robots.truth import built_in_demo, built_in_free

RATE = 1000.0  # Hz, of robots without a built-in experiment
_SHARE = 0.01  # of the effort limit: noise of a typical torque signal


@dataclass(frozen=True, eq=False)
class Recorder:
    """Rate and sensors of a robot.

    Attributes:
        rate: Sampling rate, in [Hz].
        effort_sigma: Standard deviation of the effort noise, shape (a,), in [N m] or [N]; empty: unknown.
        resolution: Encoder resolution of the measured positions, in [rad] or [m]; 0: none.
        source: Origin of these values, as text.
    """

    rate: float
    effort_sigma: tuple[float, ...]
    resolution: float | Float[Array, "m"]
    source: str


def default_recorder(mechanism: Mechanism) -> Recorder:
    """From the built-in experiment if there is one; else 1 kHz and one percent of the effort limits.

    Actuators without a limit get the median of the others. Limits that are placeholders say nothing: one
    percent of the efforts that moving the priors of the description needs is taken instead.
    """
    free = built_in_free(mechanism)
    label = f"built-in experiment of '{mechanism.name}'"
    if free is not None:
        return Recorder(free.rate, (), 0.0, label)
    demo = built_in_demo(mechanism)
    if demo is not None:
        same = load_robot(mechanism.name).measured_positions == mechanism.measured_positions
        return Recorder(demo.rate, tuple(demo.torque_sigma.tolist()), demo.encoder if same else 0.0, label)
    wrong = effort_placeholders(mechanism)
    if wrong and len(wrong) == len(mechanism.actuators):
        needed = needed_efforts(mechanism)
        source = "no plausible effort limits" if needed is None else f"{100 * _SHARE:g} % of usual efforts"
        return Recorder(RATE, () if needed is None else tuple((_SHARE * needed).tolist()), 0.0, source)
    motors = (actuator.name for actuator in mechanism.actuators)
    limits = [None if name in wrong else effort_range(mechanism, name) for name in motors]
    known = [_SHARE * max(abs(x) for x in span) for span in limits if span is not None]
    known = [value for value in known if 0.0 < value < np.inf]
    if not known:
        return Recorder(RATE, (), 0.0, "no effort limits")
    middle = float(np.median(known))
    sizes = [middle if span is None else _SHARE * max(abs(x) for x in span) for span in limits]
    sigma = tuple(size if 0.0 < size < np.inf else middle for size in sizes)
    return Recorder(RATE, sigma, 0.0, f"{100 * _SHARE:g} % of the effort limits")


def recording_words(
    rate: float,
    effort_sigma: float | Float[Array, "a"] | tuple[float, ...],
    source: str = "",
    units: Iterable[str] = (),
) -> str:
    """Rate and effort noise of a recording as one line of text; `units` are those of the efforts."""
    sizes = np.atleast_1d(np.asarray(effort_sigma, dtype=float))
    noise = "no effort noise"
    if sizes.any():
        low, high = number(float(sizes.min()), 3), number(float(sizes.max()), 3)
        noise = "effort noise " + (low if low == high else f"{low} to {high}")
        noise = " ".join([noise, " or ".join(sorted(set(units), reverse=True))]).rstrip()
    return f"{rate:g} Hz, {noise}" + (f" ({source})" if source else "")
