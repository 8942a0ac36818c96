"""Wrong descriptions for `description.py`: five robots, their simulated logs, and twelve kinds of error."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.excitation.random_motion import random_motion
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays
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
    noisy: bool = True


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
    noisy: bool = True,
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
        duration=max(1, round(SECONDS * demo.frequency)) * motion.period,
        encoder_resolution=demo.encoder if noisy else 0.0,
        torque_sigma=demo.torque_sigma if noisy else 0.0,
        seed=977 * seed + 6,
        tension=demo.tension,
        name=f"{robot} {seed}",
    )


def clean(robot: str, seed: int, noisy: bool = True) -> Setup:
    """One log of the true robot, and its description."""
    mechanism, _ = plant(robot)
    return Setup(robot, lambda: mechanism, (simulated(robot, seed, {}, noisy=noisy),), noisy)


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
        return described(
            setup, lambda robot: replace(robot, gravity=turn(np.asarray(robot.gravity, float), seed))
        )

    return fault


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
    return replace(setup, logs=(simulated(setup.robot, seed, truth, real, setup.noisy),))


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
    other = simulated(setup.robot, seed + 50, {}, other_start(robot, seed), setup.noisy)
    return replace(setup, logs=(*setup.logs, other))


GRAVITY, BRANCH = ("gravity",), ("branch",)
# Kind of error -> what the first hypothesis, code of a reason or refusal must contain, and the error.
KINDS: dict[str, tuple[tuple[str, ...], Fault]] = {
    "clean": ((), lambda setup, _: setup),
    "upside down": (GRAVITY, gravity(lambda g, _: -g)),
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
