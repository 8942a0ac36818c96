"""Errors of descriptions: is the right hypothesis named first, and nothing on clean logs?

    python benchmarks/description.py [--robots R ...] [--kinds K ...] [--seeds A B] [--out FILE] [--table]

Twelve kinds of error, five robots. Each case simulates a robot, identifies it with a wrong description and
reads the first hypothesis of the result, or the text of the refusal. Cases in FILE (JSON lines) are not run
again. `--table` prints the table of FILE alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError, NoResultError
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs
from dynid.robots.demo_file import Demo, demo_file, read_demo
from dynid.simulation.prescribed import simulate_log

HERE = Path(__file__).parent
ROBOTS = ("ur5", "puma560", "dualv", "orthoglide", "fourbar")
SECONDS, RATE = 5.0, 250.0
BUILT_IN = HERE.parent / "src" / "dynid" / "robots"


@dataclass(frozen=True, eq=False)
class Setup:
    """What a user would hand over: a description (a file to read, or a mechanism) and logs."""

    robot: str
    mechanism: Callable[[], Mechanism]
    logs: tuple[Log, ...]


Fault = Callable[["Setup", int], Setup | None]


# --- simulated robots ---------------------------------------------------------------------------------------


@cache
def plant(robot: str) -> tuple[Mechanism, Demo]:
    """The true robot and its experiment."""
    own = HERE / f"{robot}.yaml"
    mechanism = load_robot(own if own.is_file() else robot)
    file = HERE / f"{robot}.demo.yaml" if own.is_file() else demo_file(robot)
    return mechanism, read_demo(file, mechanism)


def simulated(
    robot: str,
    seed: int,
    truth: Mapping[str, float],
    mechanism: Mechanism | None = None,
    seconds: float = SECONDS,
) -> Log:
    """A log along a motion of its own; `mechanism`: a robot that differs from the built-in one."""
    nominal, demo = plant(robot)
    for other in range(6):
        try:
            motion = random_motion(
                mechanism or nominal,
                seed=977 * seed + 7919 * other,
                harmonics=demo.harmonics,
                frequency=demo.frequency,
                draws=3,
            )
            break
        except InputError:
            continue
    else:
        raise InputError(f"no motion of {robot} with seed {seed}")
    return simulate_log(
        mechanism or nominal,
        {**demo.truth, **truth},
        motion,
        rate=min(demo.rate, RATE),
        duration=max(1, round(seconds * demo.frequency)) * motion.period,
        encoder_resolution=demo.encoder,
        torque_sigma=demo.torque_sigma,
        seed=977 * seed + 6,
        tension=demo.tension,
        name=f"{robot} {seed}",
    )


def clean(robot: str, seed: int) -> Setup:
    """One log of the true robot, and its description."""
    mechanism, _ = plant(robot)
    return Setup(robot, lambda: mechanism, (simulated(robot, seed, {}),))


# --- errors -------------------------------------------------------------------------------------------------


def edited(setup: Setup, change: Callable[[str], str]) -> Setup | None:
    """The text of the description changed; None where the change does nothing."""
    folder = HERE if (HERE / f"{setup.robot}.yaml").is_file() else BUILT_IN
    files = [one for one in folder.glob(f"{setup.robot}.*") if ".demo" not in one.name]
    texts = {one.name: one.read_text() for one in files}
    wrong = {name: change(text) for name, text in texts.items()}
    if wrong == texts:
        return None

    def read() -> Mechanism:
        place = Path(tempfile.mkdtemp(prefix="dynid_description_"))
        try:
            for name, text in wrong.items():
                (place / name).write_text(text)
            return load_robot(place / f"{setup.robot}.yaml")
        finally:
            shutil.rmtree(place)

    return replace(setup, mechanism=read)


def described(setup: Setup, change: Callable[[Mechanism], Mechanism]) -> Setup:
    """The description changed, the logs not."""
    return replace(setup, mechanism=lambda: change(setup.mechanism()))


def moved(setup: Setup, change: Callable[[Any], Any]) -> Setup:
    """Positions as a wrong encoder would give them."""
    robot = setup.mechanism()

    def one(log: Log) -> Log:
        return log_from_arrays(
            robot, log.t, change(log.q.copy()), log.tau, name=log.name, payloads=log.payloads
        )

    return replace(setup, logs=tuple(map(one, setup.logs)))


def column(setup: Setup, seed: int) -> int:
    """A joint, another one for every seed; the first of an arm has no effect on gravity."""
    n = setup.logs[0].q.shape[1]
    return 1 + seed % 2 if setup.robot in ("ur5", "puma560") else seed % n


def gravity(turn: Callable[[Any, int], Any]) -> Fault:
    """Another gravity in the description."""

    def fault(setup: Setup, seed: int) -> Setup | None:
        # The parameters of a four-bar absorb any gravity in its plane, to rounding: nothing can be tested.
        if setup.robot == "fourbar":
            return None
        return described(
            setup, lambda robot: replace(robot, gravity=turn(np.asarray(robot.gravity, float), seed))
        )

    return fault


def upside_down(setup: Setup, seed: int) -> Setup | None:
    """Gravity with the wrong sign; perpendicular to the plane of dualv it has no effect."""
    return None if setup.robot == "dualv" else gravity(lambda g, _: -g)(setup, seed)


def exchanged(g: Any, seed: int) -> Any:
    """Gravity along another axis."""
    return np.roll(g, 1 + seed % 2) if seed % 4 < 2 else -np.roll(g, 1 + seed % 2)


def tilted(g: Any, seed: int) -> Any:
    """By 6 degrees about a level axis that the seed selects."""
    axes = [e for e in np.eye(3) if abs(e @ g) < 1.0]
    angle = np.pi * seed / 10.0
    level = np.cos(angle) * axes[0] + np.sin(angle) * axes[1]
    return np.cos(0.105) * g + np.sin(0.105) * np.linalg.norm(g) * level


def zero(setup: Setup, seed: int) -> Setup:
    """A joint zero off by 6 degrees, or 10 mm; of redundant encoders by 0.3 degrees."""
    k, sign = column(setup, seed), -1.0 if seed % 2 else 1.0
    size = {"dualv": 0.005, "orthoglide": 0.01}.get(setup.robot, 0.1)
    shift = np.zeros(setup.logs[0].q.shape[1])
    shift[k] = sign * size
    return moved(setup, lambda q: q + shift)


def turn(setup: Setup, seed: int) -> Setup | None:
    """An encoder one turn off; for an open arm it is the same pose, for a slide there is none."""
    if setup.robot not in ("dualv", "fourbar"):
        return None
    shift = np.zeros(setup.logs[0].q.shape[1])
    shift[column(setup, seed)] = 2.0 * np.pi * (-1.0 if seed % 2 else 1.0)
    return moved(setup, lambda q: q + shift)


def sign(setup: Setup, seed: int) -> Setup:
    """An encoder that counts the other way."""
    scale = np.ones(setup.logs[0].q.shape[1])
    scale[column(setup, seed)] = -1.0
    return moved(setup, lambda q: q * scale)


LENGTHS = {
    "ur5": (r'xyz="-0.425 0 0"', r'xyz="-0.39225 0 0"', r'xyz="0 0 0.10915"'),
    "puma560": ("a2: 0.4318", "d4: 0.4331", "d3: -0.0934"),
    "dualv": ("d2: 0.28", "d3: 0.28", "bx: 0.105"),
    "orthoglide": ("D4: 0.31025",),
    "fourbar": ("coupler: 0.4", "rocker: 0.3", "crank: 0.12"),
}


def _renumbered(text: str, change: Callable[[float], float]) -> str:
    """Text with its number (not a digit of a name) changed; of several, the one that is not zero."""
    number = next(one for one in re.findall(r"-?\d+\.\d+", text))
    return text.replace(number, f"{change(float(number)):.8g}")


def millimetres(setup: Setup, seed: int) -> Setup | None:
    """One dimension in mm."""
    own = LENGTHS[setup.robot]
    text = own[seed % len(own)]
    return edited(setup, lambda file: file.replace(text, _renumbered(text, lambda x: 1e3 * x), 1))


def degrees(setup: Setup, seed: int) -> Setup | None:
    """Angles of the description in degrees."""

    def change(file: str) -> str:
        file = file.replace("g1: 15.52*pi/180", "g1: 15.52").replace("incline: 20*pi/180", "incline: 20")
        file = re.sub(r"alpha: (-?)pi/2", r"alpha: \g<1>90", file)
        return re.sub(r'rpy="(-?)1\.5707963\d+ 0 0"', r'rpy="\g<1>90 0 0"', file)

    return edited(setup, change)


def symbol(setup: Setup, seed: int) -> Setup | None:
    """One dimension wrong: 1 mm where redundant encoders see it, else 8 cm of an arm, 2 cm of a loop."""
    own = LENGTHS[setup.robot]
    text = own[seed % len(own)]
    size = {"ur5": 0.08, "puma560": 0.08, "dualv": 0.001}.get(setup.robot, 0.02)
    size *= -1.0 if seed % 2 else 1.0
    return edited(setup, lambda file: file.replace(text, _renumbered(text, lambda x: x + size), 1))


PASSIVE = {
    "dualv": {"elbow1": (0.1, 0.5), "elbow2": (0.1, 0.5), "elbow3": (0.1, 0.5), "elbow4": (0.1, 0.5)},
    "orthoglide": {"swing1": (0.5, 4.0), "swing2": (0.5, 4.0), "swing3": (0.5, 4.0)},
    "fourbar": {"pivot": (0.02, 0.15), "knee": (0.02, 0.1)},
}


def friction(setup: Setup, seed: int) -> Setup:
    """Friction left out: of passive joints; of an arm that of all joints."""
    if setup.robot not in PASSIVE:

        def bare(robot: Mechanism) -> Mechanism:
            drive = {k: tuple(s for s in own if s not in ("Fv", "Fs")) for k, own in robot.drive.items()}
            return replace(robot, drive=drive)

        return described(setup, bare)
    own = PASSIVE[setup.robot]
    robot, _ = plant(setup.robot)
    real = replace(robot, drive={**robot.drive, **dict.fromkeys(own, ("Fv", "Fs"))})
    truth = {
        f"{s}_{name}": value
        for name, both in own.items()
        for s, value in zip(("Fv", "Fs"), both, strict=True)
    }
    return replace(setup, logs=(simulated(setup.robot, seed, truth, real),))


BRANCHES = {
    "dualv": [{"elbow2": 1.0}, {"elbow4": 1.0}, {"elbow1": 1.0, "wrist1": 1.0}],
    "orthoglide": [{"swing1": 1.0}, {"swing2": 1.0}, {"swing3": 1.0}],
    "fourbar": [{"knee": 1.0, "pivot": 1.0}],
}


def other_start(robot: Mechanism, seed: int) -> Mechanism:
    """Another assembly of the loops at the start pose: unmeasured joints bent the other way."""
    if robot.name == "fourbar":
        return replace(robot, start={"motor": 0.7, "knee": -2.0, "pivot": -1.0})
    own = BRANCHES[robot.name]
    flipped = own[seed % len(own)]
    return replace(robot, start={k: -v if k in flipped else v for k, v in robot.start.items()})


def branch(setup: Setup, seed: int) -> Setup | None:
    """The description's start on another branch."""
    return described(setup, lambda robot: other_start(robot, seed)) if setup.robot in BRANCHES else None


def later_branch(setup: Setup, seed: int) -> Setup | None:
    """A second log on another branch than the first."""
    if setup.robot != "fourbar":
        return None
    robot, _ = plant(setup.robot)
    other = simulated(setup.robot, seed + 50, {}, other_start(robot, seed))
    return replace(setup, logs=(*setup.logs, other))


GRAVITY, BRANCH = ("gravity",), ("branch",)
# Kind of error -> what the first hypothesis, code of a reason or refusal must contain, and the error.
KINDS: dict[str, tuple[tuple[str, ...], Fault]] = {
    "clean": ((), lambda setup, _: setup),
    "upside down": (GRAVITY, upside_down),
    "axes exchanged": (GRAVITY, gravity(exchanged)),
    "tilted": (GRAVITY, gravity(tilted)),
    "zero": (("zero",), zero),
    "turn": (("turn",), turn),
    "sign": (("sign", "opposite"), sign),
    "mm": ((" mm", "in mm"), millimetres),
    "degrees": (("degree",), degrees),
    "symbol": (("length", "dimension"), symbol),
    "friction": (("friction",), friction),
    "branch": (BRANCH, branch),
    "later branch": (BRANCH, later_branch),
}


# --- run ----------------------------------------------------------------------------------------------------


def outcome(robot: str, kind: str, seed: int) -> dict[str, Any] | None:
    """Make the case, identify, and read the first hypothesis; None where the error does not exist."""
    setup = KINDS[kind][1](clean(robot, seed), seed)
    if setup is None:
        return None
    started, found = time.process_time(), {"robot": robot, "kind": kind, "seed": seed}
    try:
        mechanism = setup.mechanism()
        experiment = Experiment(robot=mechanism, auto="off")
        estimate = identify_logs(mechanism, setup.logs, (), experiment)
    except NoResultError as error:
        estimate = error.estimate
        if estimate is None:
            return {**found, "first": f"refused: {error}", "cpu": time.process_time() - started}
    except InputError as error:
        return {**found, "first": f"refused: {error}", "cpu": time.process_time() - started}
    tried = getattr(estimate, "hypotheses", ())
    return {
        **found,
        "first": tried[0].name if tried else "",
        "hypotheses": [[one.name, one.residual_percent, one.p] for one in tried[:4]],
        "level": estimate.verdict.level,
        "reasons": [one.code for one in estimate.verdict.reasons],
        "warnings": [one.code for one in estimate.warnings],
        "residual": estimate.fit.residual_percent,
        "cpu": time.process_time() - started,
    }


NOTHING = ("", "as described")
# Warnings that accuse the description.
ACCUSING = frozenset(
    {
        "gravity-off", "zero-offset", "wrong-branch", "loop-misfit", "position-order", "position-unit",
        "friction-missing", "dimension-off", "dimension-unit", "effort-sign", "model-misfit", "payload-label",
    }
)  # fmt: skip


VISIBLE = 1.02  # times the residual of the true description: an error that raises it less does not show


def visible(case: Mapping[str, Any], cases: list[dict[str, Any]]) -> bool:
    """Whether the log shows the error at all: the fit is worse than with the true description, or refused."""
    true = [
        one["residual"]
        for one in cases
        if one["kind"] == "clean" and one["robot"] == case["robot"] and one["seed"] == case["seed"]
    ]
    if case["kind"] == "clean" or "residual" not in case or not true or "loop-misfit" in case["warnings"]:
        return True
    return case["kind"] == "turn" or case["residual"] > VISIBLE * true[0]


def right(case: Mapping[str, Any]) -> bool:
    """Whether the cause is named first; of a clean log, whether nothing is."""
    words = KINDS[case["kind"]][0]
    if case["first"].startswith("crash"):
        return False
    if not words:
        return case["first"] in NOTHING and not ACCUSING & set(case.get("warnings", ()))
    first = case["first"].lower()
    if first.startswith("refused"):  # what is named as the cause, not the remedy
        first = " ".join(re.findall(r"(?:loops close with:|likely cause:|samples close)[^\n]*", first))
    if case["kind"] == "turn" and "whole-turns" in case.get("warnings", ()):
        return first in NOTHING  # removed, and named
    return any(word in first for word in words)


def table(cases: list[dict[str, Any]]) -> Iterator[str]:
    """Right of all, by kind and robot."""
    yield f"{'':16}" + "".join(f"{robot:>12}" for robot in ROBOTS) + f"{'all':>12}"
    for kind in KINDS:
        row = []
        for robots in (*((one,) for one in ROBOTS), ROBOTS):
            every = [one for one in cases if one["kind"] == kind and one["robot"] in robots]
            own = [right(one) for one in every if visible(one, cases)]
            hidden = f" ({len(every) - len(own)})" if len(every) > len(own) else ""
            row.append(f"{sum(own)}/{len(own)}{hidden}" if every else "-")
        yield f"{kind:16}" + "".join(f"{one:>12}" for one in row)
    wrong = [one for one in cases if one["kind"] != "clean"]
    shown = [one for one in wrong if visible(one, cases)]
    yield f"right first: {sum(map(right, shown))} of {len(shown)} errors that show in the residual"
    yield f"(in brackets: {len(wrong) - len(shown)} errors that raise it by less than 2 %)"


def main() -> None:
    """Run the cases that are not in the file, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="*", default=list(ROBOTS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 10), help="first, and one after the last")
    parser.add_argument("--out", type=Path, default=Path("description.jsonl"))
    parser.add_argument("--table", action="store_true", help="print the table only")
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out.is_file() else []
    cases = [json.loads(one) for one in lines]
    done = {(one["robot"], one["kind"], one["seed"]) for one in cases}
    wanted = [(r, k, s) for s in range(*given.seeds) for r in given.robots for k in given.kinds]
    for robot, kind, seed in () if given.table else wanted:
        if (robot, kind, seed) in done:
            continue
        try:
            found = outcome(robot, kind, seed)
        except Exception:  # a crash is an outcome too
            found = {
                "robot": robot,
                "kind": kind,
                "seed": seed,
                "first": f"crash: {traceback.format_exc(limit=-2)}",
            }
        if found is None:
            continue
        cases.append(found)
        with given.out.open("a") as stream:
            stream.write(json.dumps(found) + os.linesep)
        mark = "  " if right(found) else "XX"
        tail = f"{found['first'][:150]!r} {found.get('reasons', '')}"
        print(f"{mark} {robot:11}{kind:15}{seed:3}{found.get('cpu', 0.0):6.1f} s {tail}", flush=True)
    print("\n".join(table(cases)))


if __name__ == "__main__":
    main()
