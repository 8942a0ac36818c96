"""How often the log doctor finds faults that were put into simulated logs, and how often it alarms without.

    python benchmarks/doctor.py --clean 20 --seeds 3 --delays 20 --first 100 --minutes 60

Three robots. A fault counts as found if a finding has one of its codes, or if the log is refused with one of
its words. A false alarm is a finding `care` or `stop` on a clean log, except those about excitation.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.verdict import clean

from dynid.common.errors import InputError
from dynid.doctor.diagnosis import Diagnosis
from dynid.doctor.examine import check

ROBOTS = ("ur5", "palletiser", "scara")
# What the motion does not show is no fault of the log.
OF_MOTION = {"excitation", "excitation-poor", "joint-unexcited", "told-once", "one-block", "rank-undecided"}
Columns = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """A change of the columns of a log, and the codes or words of a refusal that name it."""

    name: str
    change: Callable[[Columns, np.random.Generator], Columns]
    named_by: tuple[str, ...]


def columns_of(robot: str, seed: int) -> tuple[Any, list[Columns], dict[str, Any]]:
    """Robot, the columns of two clean logs, and its options."""
    setup = clean(robot, seed, validated=False)
    logs: list[Columns] = [
        {"t": log.t.copy(), "q": log.q.copy(), "tau": log.tau.copy()} for log in setup.logs
    ]
    return setup.mechanism, logs, setup.options


def shifted(seconds: float, joint: int | None = None) -> Callable[..., Columns]:
    """Efforts later by a part of a step, by interpolation."""

    def change(x: Columns, _: Any) -> Columns:
        own = range(x["tau"].shape[1]) if joint is None else [joint]
        for i in own:
            x["tau"][:, i] = np.interp(x["t"] - seconds, x["t"], x["tau"][:, i])
        return x

    return change


def edited(key: str, change: Callable[[Any, np.random.Generator], None]) -> Callable[..., Columns]:
    """One array changed in place."""

    def apply(x: Columns, draw: np.random.Generator) -> Columns:
        change(x[key], draw)
        return x

    return apply


def _rows(x: Columns, keep: Any) -> Columns:
    return {name: values[keep] for name, values in x.items()}


def _exchange(x: Any, _: Any) -> None:
    x[:, [0, 1]] = x[:, [1, 0]]


def _scale(factor: float, joint: int | None = None) -> Callable[..., None]:
    def change(x: Any, _: Any) -> None:
        x[..., slice(None) if joint is None else joint] *= factor

    return change


def _spikes(x: Any, draw: np.random.Generator) -> None:
    at = draw.choice(len(x), 12, replace=False)
    x[at, 1] += 8.0 * np.ptp(x[:, 1])


def _zeros(x: Any, draw: np.random.Generator) -> None:
    x[draw.random(len(x)) < 0.02] = 0.0


def _saturated(x: Any, _: Any) -> None:
    most = 0.6 * np.abs(x[:, 1]).max()
    x[:, 1] = np.clip(x[:, 1], -most, most)


def _stuck(x: Any, _: Any) -> None:
    n = len(x)
    x[n // 3 : n // 3 + n // 8, 1] = x[n // 3, 1]


def _coarse(x: Any, _: Any) -> None:
    step = 0.2 * np.std(x[:, 1])
    x[:, 1] = step * np.rint(x[:, 1] / step)


def _contact(x: Any, _: Any) -> None:
    n = len(x)
    m = n // 20
    x[n // 2 : n // 2 + m] += np.hanning(m)[:, None] * 0.8 * np.abs(x).max(axis=0)


def _step(x: Any, _: Any) -> None:
    x[len(x) // 2 :, 1] += 0.3


def _not_numbers(x: Any, _: Any) -> None:
    x[len(x) // 2 : len(x) // 2 + 3, 0] = np.nan


def _jitter(t: Any, draw: np.random.Generator) -> None:
    t += draw.uniform(-0.45, 0.45, len(t)) * (t[1] - t[0])


def _gap(x: Columns, _: Any) -> Columns:
    n = len(x["t"])
    return _rows(x, np.r_[0 : n // 2, n // 2 + 60 : n])


def _unsorted(x: Columns, _: Any) -> Columns:
    order = np.arange(len(x["t"]))
    order[[500, 501]] = order[[501, 500]]
    return _rows(x, order)


def _twice(x: Columns, _: Any) -> Columns:
    x["t"][700] = x["t"][699]
    return x


def _reset(x: Columns, _: Any) -> Columns:
    half = len(x["t"]) // 2
    x["t"][half:] -= x["t"][half]
    return x


def _row_number(x: Columns, _: Any) -> Columns:
    x["t"] = np.arange(len(x["t"]), dtype=float)
    return x


def _rates(x: Columns, factor: float) -> Columns:
    x["dq"] = factor * np.gradient(x["q"], x["t"][1] - x["t"][0], axis=0)
    return x


FAULTS = (
    Fault("half a sample late", shifted(0.001), ("delay", "delay-suspected")),
    Fault("5 ms late", shifted(0.005), ("delay",)),
    Fault("one effort 2 ms late", shifted(0.002, 1), ("delay",)),
    Fault("one gain 10 % off", edited("tau", _scale(1.1, 1)), ("gain",)),
    Fault("efforts / 100", edited("tau", _scale(0.01)), ("scale-differs", "scale-implausible")),
    Fault("efforts exchanged", edited("tau", _exchange), ("order", "effort-sign")),
    Fault("positions exchanged", edited("q", _exchange), ("order", "position-order", "close the loops")),
    Fault("sign of one effort", edited("tau", _scale(-1.0, 1)), ("sign", "effort-sign", "gain")),
    Fault(
        "sign of one position", edited("q", _scale(-1.0, 1)), ("sign", "position-order", "close the loops")
    ),
    Fault(
        "degrees",
        edited("q", _scale(180.0 / np.pi)),
        ("angles-large", "lengths-large", "position-unit", "degrees", "close the loops"),
    ),
    Fault("spikes", edited("tau", _spikes), ("effort-spikes",)),
    Fault("2 % of the efforts zero", edited("tau", _zeros), ("effort-spikes", "burst")),
    Fault("saturation", edited("tau", _saturated), ("saturation",)),
    Fault("effort stuck", edited("tau", _stuck), ("stuck-signal",)),
    Fault("position stuck", edited("q", _stuck), ("stuck-signal", "jump", "close the loops")),
    Fault("coarse effort", edited("tau", _coarse), ("coarse-effort",)),
    Fault("contact", edited("tau", _contact), ("burst", "outlying-run")),
    Fault("step of a position", edited("q", _step), ("position-step", "jump", "close the loops")),
    Fault("not numbers", edited("q", _not_numbers), ("not-finite",)),
    Fault("jitter", edited("t", _jitter), ("clock-jitter",)),
    Fault("gap", _gap, ("gap",)),
    Fault("out of order", _unsorted, ("time-unsorted",)),
    Fault("two samples at one time", _twice, ("twice",)),
    Fault("clock reset", _reset, ("clock-reset",)),
    Fault("row number as time", _row_number, ("counts the rows",)),
    Fault("velocity in degrees", lambda x, _: _rates(x, 180.0 / np.pi), ("velocity",)),
    Fault("constant efforts", edited("tau", lambda x, _: x.fill(0.0)), ("constant",)),
    Fault("16 samples", lambda x, _: _rows(x, slice(0, 16)), ("samples", "segment")),
)


def found(diagnosis: Diagnosis, fault: Fault) -> bool:
    """Whether a diagnosis names a fault."""
    codes = {one.code for one in diagnosis.findings if one.severity != "note"}
    refusals = " ".join(one.text for one in diagnosis.findings if one.refused)
    return any(name in codes or name in refusals for name in fault.named_by)


def alarms(diagnosis: Diagnosis) -> list[str]:
    """Codes of alarms, those about the motion left out."""
    loud = [one.code for one in diagnosis.findings if one.severity != "note"]
    return [code for code in loud if code not in OF_MOTION]


def diagnosed(robot: str, seed: int, fault: Fault | None) -> Diagnosis | str:
    """The diagnosis of a simulated log, or the text of an error."""
    mechanism, logs, options = columns_of(robot, seed)
    draw = np.random.default_rng(seed)
    if fault is not None:
        logs = [fault.change(one, draw) for one in logs]
    try:
        return check(mechanism, logs, **options)
    except InputError as error:
        return str(error)


def trials(clean_logs: int, seeds: int, delays: int, first: int) -> Iterator[tuple[str, int, Fault | None]]:
    """Robot, seed and fault of each trial; clean logs first, half samples on one robot last."""
    for k in range(clean_logs):
        yield ROBOTS[k % len(ROBOTS)], first + k, None
    for seed in range(seeds):
        for i, fault in enumerate(FAULTS):
            yield ROBOTS[(i + seed) % len(ROBOTS)], first + 100 + seed, fault
    for k in range(delays):
        yield "ur5", first + 200 + k, FAULTS[0]


def main() -> None:
    """Run the trials, and print one line each and the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("--clean", 20), ("--seeds", 3), ("--delays", 20), ("--first", 100)):
        parser.add_argument(name, type=int, default=value)
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    end = time.monotonic() + 60.0 * given.minutes
    quiet = n_clean = hit = n_fault = 0
    for robot, seed, fault in trials(given.clean, given.seeds, given.delays, given.first):
        if time.monotonic() > end:
            print("stopped: out of time")
            break
        begin = time.process_time()
        outcome = diagnosed(robot, seed, fault)
        seconds = time.process_time() - begin
        if fault is None:
            loud = [outcome] if isinstance(outcome, str) else alarms(outcome)
            n_clean, quiet = n_clean + 1, quiet + (not loud)
            print(f"clean, {robot} {seed}: {loud or 'quiet'} ({seconds:.1f} s)", flush=True)
            continue
        named = isinstance(outcome, Diagnosis) and found(outcome, fault)
        codes = outcome if isinstance(outcome, str) else alarms(outcome)
        n_fault, hit = n_fault + 1, hit + named
        print(
            f"{fault.name}, {robot} {seed}: {'found' if named else 'MISSED'} {codes} ({seconds:.1f} s)",
            flush=True,
        )
    print(f"found {hit} of {n_fault} faults; {n_clean - quiet} of {n_clean} clean logs with an alarm")


if __name__ == "__main__":
    main()
