"""Descriptions that are off by 1 mm or 5 mrad: do intervals contain the truth, and is the error found?

    python benchmarks/uncertain_description.py [--cases C ...] [--modes M ...] [--seeds A B] [--out FILE]

Each draw moves some quantities of a robot by normal errors, simulates short logs of the moved robot and
identifies them with the description that is off. All parameters of a draw hang on these few errors: a share
from less than twenty draws is known to some percent only.

    right     the true description, for comparison
    exact     the wrong description taken as exact
    sigma     with `sigma:` of the quantities
    unknown   with `unknown:`, prior of 10 mm or 10 mrad
    both      with `unknown:` and `sigma:`

The column `as right` has the share that intervals as wide as those of the true description would contain. A
wrong description also leaves residuals, which widen its own intervals.

Draws in FILE (JSON lines) are not run again. `--table` prints the tables of FILE alone; `--each` adds the
counts of each parameter.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.case import task_case
from dynid.cases.free_motion.simulation import free_logs
from dynid.common.errors import DynidError
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit, fit_task
from dynid.mechanism.description import ZERO, at_values, current
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.robots.demo_file import demo_file, read_demo, read_free_demo
from dynid.simulation.prescribed import simulate_log
from dynid.unknown import Task

MODES = ("right", "exact", "sigma", "unknown", "both")
MILLIMETRE, ZEROS = 1e-3, 5e-3
# Of the built-in experiments, in noise per root of the sampling rate: short logs then have the uncertainty of
# long ones, and logs with fewer samples that of logs with more.
NOISE = 0.2
SECONDS = 20.0  # of each log: a motion that does not repeat


@dataclass(frozen=True)
class Trial:
    """One robot and the quantities of it that are off.

    Attributes:
        sigma: Standard deviation of the errors, in [m] or [rad].
        rate, harmonics: Of the logs of a driven robot: one period of SECONDS each, in [Hz].
        full_rate: At which its efforts have NOISE times the noise of its experiment, in [Hz].
        motions, seconds: Runs of a robot on locked cables, and duration of each, in [s].
    """

    robot: str
    names: tuple[str, ...]
    sigma: float
    rate: float = 100.0
    full_rate: float = 300.0
    harmonics: int = 30
    motions: int = 5
    seconds: float = 4.0


def _zeros(*names: str) -> tuple[str, ...]:
    return tuple(ZERO + name for name in names)


@cache
def trials() -> dict[str, Trial]:
    """All cases by name."""
    legs = _zeros(*(f"leg{i}" for i in range(1, 7)))
    motors = _zeros(*(f"motor{i}" for i in range(1, 5)))
    return {
        "dualv symbols": Trial("dualv", ("d2", "d3", "bx"), MILLIMETRE, 200.0, 500.0, harmonics=60),
        "dualv zeros": Trial("dualv", motors, ZEROS, 200.0, 500.0, harmonics=60),
        "stewart symbols": Trial("stewart", ("bx1", "by3", "px4"), MILLIMETRE),
        "stewart zeros": Trial("stewart", legs, ZEROS),
        "cable4 pulleys": Trial("cable4", ("fromx_cable1", "fromy_cable2", "fromz_cable3"), MILLIMETRE),
        "cable3 pulleys": Trial("cable3", ("fromx_cable1", "fromy_cable2", "fromz_cable3"), MILLIMETRE),
    }


# --- simulated robots ---------------------------------------------------------------------------------------


def logs_of(trial: Trial, robot: Mechanism, seed: int) -> tuple[tuple[Log, ...], dict[str, float]]:
    """Logs of a robot along motions of its own, and its true parameters."""
    free = read_free_demo(demo_file(trial.robot), robot)
    if free is not None:
        short = replace(free, motions=trial.motions, validation=1, rate=50.0, duration=trial.seconds)
        return free_logs(robot, short, seed)[:1], dict(free.truth)
    own = read_demo(demo_file(trial.robot), robot)
    logs = []
    for i, payload in enumerate(own.runs):
        motion = random_motion(
            robot, seed=100 * seed + i, harmonics=trial.harmonics, frequency=1.0 / SECONDS, draws=2
        )
        logs.append(
            simulate_log(
                robot,
                own.truth,
                motion,
                rate=trial.rate,
                duration=motion.period,
                encoder_resolution=own.encoder,
                torque_sigma=NOISE * np.sqrt(trial.rate / trial.full_rate) * own.torque_sigma,
                tension=own.tension,
                payloads=payload,
                seed=1000 * seed + i,
                name=f"run {i}",
            )
        )
    return tuple(logs), dict(own.truth)


def fitted(robot: Mechanism, logs: tuple[Log, ...], **options: Any) -> Fit:
    """The identification of a user, without checks and report."""
    experiment = Experiment(robot=robot, auto="off", **options)
    case = task_case(robot, experiment)
    return fit_task(Task(robot, tuple(case.read(log, robot, experiment) for log in logs), experiment))


def mode_of(trial: Trial, mode: str, nominal: Mechanism, true: Mechanism) -> tuple[Mechanism, dict[str, Any]]:
    """The description and settings of one mode."""
    uncertain = dict.fromkeys(trial.names, trial.sigma)
    zeros = [name.removeprefix(ZERO) for name in trial.names if name.startswith(ZERO)]
    symbols = [name for name in trial.names if not name.startswith(ZERO)]
    unknown = {"unknown": {"symbols": symbols, "zeros": zeros}}
    return {
        "right": (true, {}),
        "exact": (nominal, {}),
        "sigma": (replace(nominal, uncertain=uncertain), {}),
        "unknown": (nominal, unknown),
        "both": (replace(nominal, uncertain=uncertain), unknown),
    }[mode]


def draw(case: str, seed: int, modes: list[str]) -> Iterator[dict[str, Any]]:
    """One draw of errors in every mode: deviations of all parameters in sigma, and whether inside."""
    trial = trials()[case]
    nominal = load_robot(trial.robot)
    errors = trial.sigma * np.random.default_rng(seed + 17).standard_normal(len(trial.names))
    values = {n: current(nominal, n) + float(e) for n, e in zip(trial.names, errors, strict=True)}
    true = at_values(nominal, values)
    logs, chi = logs_of(trial, true, seed)
    reference = fitted(true, logs)
    truth = reference.true_values(chi)
    for mode in modes:
        found: dict[str, Any] = {"case": case, "seed": seed, "mode": mode}
        started = time.process_time()
        try:
            robot, options = mode_of(trial, mode, nominal, true)
            fit = reference if mode == "right" else fitted(robot, logs, **options)
            parts = fit.parts
        except DynidError as error:
            yield {**found, "error": str(error), "cpu": time.process_time() - started}
            continue
        for p in parts.parameters:
            if p.name not in truth or p.ci95 is None or not p.sigma:
                continue
            inside = bool(p.ci95[0] <= truth[p.name] <= p.ci95[1])
            row = [inside, (p.value - truth[p.name]) / p.sigma, p.sigma]
            found.setdefault("parameters", {})[p.name] = row
        about = fit.description if mode in ("unknown", "both") else None
        if about is not None:
            every = {**about.symbols, **{ZERO + k: v for k, v in about.zeros.items()}}
            found["quantities"] = {
                name: [one.identifiable, (one.value - values[name]) / (one.sigma or np.inf), one.sigma]
                for name, one in every.items()
            }
        found["notices"] = sorted({one.code for one in (*fit.notices, *parts.warnings)})
        yield {**found, "cpu": time.process_time() - started}


# --- tables -------------------------------------------------------------------------------------------------


def table(draws: list[dict[str, Any]], each: bool) -> Iterator[str]:
    """Shares of truths inside their interval by case and mode, and what was found."""
    head = f"{'':18}{'mode':9}{'draws':>6}{'inside':>9}{'as right':>9}{'worst parameter':>40}{'CPU':>8}"
    yield head + "  quantities: within 3 sigma"
    keys = dict.fromkeys((one["case"], one["mode"]) for one in draws)
    for case, mode in keys:
        own = [one for one in draws if (one["case"], one["mode"]) == (case, mode)]
        count: dict[str, list[bool]] = defaultdict(list)
        for one in own:
            for name, (inside, *_) in one.get("parameters", {}).items():
                count[name].append(inside)
        pooled = [inside for values in count.values() for inside in values]
        share, narrow = _percent(pooled), _percent(_as_right(draws, own))
        worst = min(count, key=lambda n: (np.mean(count[n]), n), default="")
        shown = f"{sum(count[worst])}/{len(count[worst])} {worst[:30]}" if count else ""
        cpu = float(np.median([one["cpu"] for one in own]))
        failed = sum("error" in one for one in own)
        tail = f" ({failed} refused)" if failed else ""
        line = f"{case:18}{mode:9}{len(own):6}{share:>9}{narrow:>9}{shown:>40}{cpu:7.1f}s  "
        yield line + _found([one["quantities"] for one in own if "quantities" in one]) + tail
        if each:
            for name, values in count.items():
                yield f"    {sum(values):3}/{len(values):<3} {name}"


def _percent(inside: list[bool]) -> str:
    return f"{100.0 * np.mean(inside):.1f} %" if inside else "-"


def _as_right(draws: list[dict[str, Any]], own: list[dict[str, Any]]) -> list[bool]:
    """Whether errors are below two standard deviations of the fit with the true description."""
    right = {(one["case"], one["seed"]): one["parameters"] for one in draws if one["mode"] == "right"}
    inside = []
    for one in own:
        known = right.get((one["case"], one["seed"]), {})
        for name, (_, off, sigma) in one.get("parameters", {}).items():
            if name in known:
                inside.append(abs(off * sigma) < 2.0 * known[name][2])
    return inside


def _found(own: list[dict[str, list[Any]]]) -> str:
    """Quantities that the data determine, within three sigma, and the median sigma of each."""
    seen: dict[str, list[tuple[float, float]]] = defaultdict(list)
    unseen = 0
    for one in own:
        for name, (identifiable, off, sigma) in one.items():
            if identifiable:
                seen[name].append((off, sigma))
            else:
                unseen += 1
    if not seen and not unseen:
        return ""
    off = np.array([x for values in seen.values() for x, _ in values])
    sigma = np.array([x for values in seen.values() for _, x in values])
    if not len(off):
        return f"none determined of {unseen}"
    text = f"{np.sum(np.abs(off) < 3.0)}/{len(off)} (rms {np.sqrt(np.mean(off**2)):.2f}, median sigma"
    return text + f" {1e6 * np.median(sigma):.3g} um), {unseen} not determined"


def main() -> None:
    """Run the draws that are not in the file, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="*", default=list(trials()))
    parser.add_argument("--modes", nargs="*", default=list(MODES))
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 20), help="first, and one after the last")
    parser.add_argument("--out", type=Path, default=Path("uncertain_description.jsonl"))
    parser.add_argument("--table", action="store_true", help="print the tables only")
    parser.add_argument("--each", action="store_true", help="counts of each parameter")
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out.is_file() else []
    draws = [json.loads(one) for one in lines]
    done = {(one["case"], one["seed"], one["mode"]) for one in draws}
    for seed in () if given.table else range(*given.seeds):
        for case in given.cases:
            modes = [mode for mode in given.modes if (case, seed, mode) not in done]
            for found in draw(case, seed, modes) if modes else ():
                draws.append(found)
                with given.out.open("a") as stream:
                    stream.write(json.dumps(found) + "\n")
                inside = [x[0] for x in found.get("parameters", {}).values()]
                shown = f"{sum(inside)}/{len(inside)} {_found([found.get('quantities', {})])}"
                print(
                    f"{case:18}{seed:3} {found['mode']:9}{found['cpu']:6.1f} s {shown}"
                    f" {found.get('error', '')[:200]}",
                    flush=True,
                )
    print("\n".join(table(draws, given.each)))


if __name__ == "__main__":
    main()
