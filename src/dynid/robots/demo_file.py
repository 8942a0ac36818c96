"""Reader of NAME.demo.yaml: the true parameters and the simulated experiment of a built-in robot.

truth:   bodies: {BODY: {M, com, central: {XX ...}}}   central: about the centre of mass
                                                       or `description`: the priors of the robot
         payloads: {PAYLOAD: as a body}
         drive: {JOINT: {Fv: ...}}
log:     rate [Hz], periods, encoder [rad, m], torque_sigma [N m, N]: one number or one per joint
         runs: number, or one entry each: {payload: NAME} or {}; validation: one more such entry
         tension: internal tension of a redundantly actuated robot [N m, N]
model:   default: that of the robot
motion:  harmonics, frequency [Hz], draws, seed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.brief import one_line
from dynid.common.entry import Entry, root_entry
from dynid.common.errors import InputError, nearest
from dynid.common.strict_yaml import read_yaml
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS
from dynid.mechanism.inertia import SYMBOLS, from_centre_of_mass, is_physical
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.robot_file.scope import Scope


@dataclass(frozen=True, eq=False)
class Demo:
    """The built-in experiment of a robot.

    Attributes:
        truth: Every standard parameter by name, SI.
        rate: Sampling rate, in [Hz].
        periods: Periods of the motion in each log.
        runs: Payloads mounted in each log for identification.
        validation: Payloads mounted in one more log, for validation.
        model: Identification model; None: that of the robot.
        encoder: Resolution of each measured position, shape (m,), in [rad] or [m].
        torque_sigma: Standard deviation of the noise of each effort, shape (a,), in [N m] or [N].
        tension: Internal tension, see `internal_tension`, in [N m] or [N].
        harmonics, frequency, draws, seed: Of the motion, see `random_motion`.
    """

    truth: Mapping[str, float]
    rate: float
    periods: int
    runs: tuple[tuple[str, ...], ...]
    validation: tuple[str, ...]
    model: str | None
    encoder: Float[Array, "m"]
    torque_sigma: Float[Array, "a"]
    tension: float
    harmonics: int
    frequency: float
    draws: int
    seed: int

    __repr__ = one_line


def read_demo(file: Path, mechanism: Mechanism) -> Demo:
    """Read and check the experiment of `mechanism`; every standard parameter must get a value."""
    root = root_entry(read_yaml(file))
    fields = root.fields(("symbols", "truth", "log", "motion", "model"), required=("truth", "log", "motion"))
    scope = Scope()
    if "symbols" in fields:
        scope.declare(fields["symbols"])
    log_keys = ("rate", "periods", "runs", "encoder", "torque_sigma")
    log = fields["log"].fields((*log_keys, "validation", "tension"), required=log_keys)
    motion_keys = ("harmonics", "frequency", "draws", "seed")
    motion = fields["motion"].fields(motion_keys, required=motion_keys)
    return Demo(
        truth=truth_of(fields["truth"], scope, mechanism),
        rate=scope.positive(log["rate"]),
        periods=log["periods"].count(),
        runs=_runs(log["runs"], mechanism),
        validation=_mounted(log["validation"], mechanism) if "validation" in log else (),
        model=fields["model"].text() if "model" in fields else None,
        encoder=_each(log["encoder"], scope, mechanism.measured_positions),
        torque_sigma=_each(log["torque_sigma"], scope, [motor.name for motor in mechanism.actuators]),
        tension=scope.positive(log["tension"]) if "tension" in log else 0.0,
        harmonics=motion["harmonics"].count(3),
        frequency=scope.positive(motion["frequency"]),
        draws=motion["draws"].count(),
        seed=motion["seed"].count(0),
    )


def truth_of(entry: Entry, scope: Scope, mechanism: Mechanism) -> dict[str, float]:
    """Every standard parameter by name, SI; an error if one has no value."""
    fields = entry.fields(("bodies", "payloads", "drive"), required=("bodies",))
    values = _bodies(fields["bodies"], scope, mechanism)
    if "payloads" in fields:
        values |= _payloads(fields["payloads"], scope, mechanism)
    if "drive" in fields:
        values |= _drive(fields["drive"], scope, mechanism)
    names = [parameter.name for parameter in parameter_table(mechanism)]
    missing = [name for name in names if name not in values]
    if missing:
        raise entry.error(f"{len(missing)} parameters have no true value: {', '.join(missing[:8])}")
    return {name: values[name] for name in names}


def _bodies(entry: Entry, scope: Scope, mechanism: Mechanism) -> dict[str, float]:
    if not entry.is_mapping:
        entry.choice(("description",))
        return {
            f"{symbol}_{name}": value
            for name, body in mechanism.bodies.items()
            for symbol, value in body.prior.items()
        }
    values: dict[str, float] = {}
    for name, item in entry.mapping().items():
        values |= _ten_parameters(item, item.known(name, mechanism.bodies, "body"), scope)
    return values


def _payloads(entry: Entry, scope: Scope, mechanism: Mechanism) -> dict[str, float]:
    """Known payload parameters of the description are the true ones."""
    values: dict[str, float] = {}
    for name, item in entry.mapping().items():
        item.known(name, mechanism.payloads, "payload")
        known = mechanism.payloads[name].known
        values |= _ten_parameters(item, name, scope)
        values |= {f"{symbol}_{name}": value for symbol, value in known.items()}
    return values


def _runs(entry: Entry, mechanism: Mechanism) -> tuple[tuple[str, ...], ...]:
    if not entry.is_list:
        return ((),) * entry.count()
    runs = tuple(_mounted(item, mechanism) for item in entry.items())
    if not runs:
        raise entry.error("no run", "list at least one")
    return runs


def _mounted(entry: Entry, mechanism: Mechanism) -> tuple[str, ...]:
    """Payloads of one run."""
    fields = entry.fields(("payload",))
    return (fields["payload"].choice(mechanism.payloads),) if fields else ()


def _ten_parameters(entry: Entry, name: str, scope: Scope) -> dict[str, float]:
    fields = entry.fields(("M", "com", "central"), required=("M", "central"))
    com = np.array(fields["com"].vector(scope.number)) if "com" in fields else np.zeros(3)
    given = fields["central"].fields(SYMBOLS[:6], required=("XX", "YY", "ZZ"))
    central = np.zeros((3, 3))
    for symbol, item in given.items():
        i, j = ("XYZ".index(letter) for letter in symbol)
        central[i, j] = central[j, i] = scope.number(item)
    chi = from_centre_of_mass(scope.positive(fields["M"]), com, central)
    if not is_physical(chi):
        raise entry.error(f"parameters of '{name}' are not physical", "check com and central")
    return {f"{symbol}_{name}": float(x) for symbol, x in zip(SYMBOLS, chi, strict=True)}


def _drive(entry: Entry, scope: Scope, mechanism: Mechanism) -> dict[str, float]:
    values = {}
    for owner, item in entry.mapping().items():
        if owner not in mechanism.drive:
            raise item.error(f"'{owner}' has no drive terms" + nearest(owner, mechanism.drive))
        declared = [symbol for symbol in DRIVE_SYMBOLS if symbol in mechanism.drive[owner]]
        for symbol, number in item.fields(declared, required=declared).items():
            values[f"{symbol}_{owner}"] = scope.number(number)
    return values


def _each(entry: Entry, scope: Scope, names: Sequence[str]) -> Float[Array, "c"]:
    """A number for each of `names`."""
    return np.full(len(names), scope.per(entry, names, scope.positive))


def demo_file(name: str) -> Path:
    """The experiment file of a built-in robot; an error if there is none."""
    from importlib.resources import files

    path = Path(str(files("dynid.robots"))) / f"{name}.demo.yaml"
    if not path.is_file():
        known = sorted(entry.name.removesuffix(".demo.yaml") for entry in path.parent.glob("*.demo.yaml"))
        raise InputError(
            f"no built-in experiment '{name}'" + nearest(name, known), remedy="see 'dynid robots'"
        )
    return path


@dataclass(frozen=True)
class FreeDemo:
    """The built-in experiment of a robot on locked cables.

    Attributes:
        truth: Every standard parameter by name, SI.
        motions, validation: Free motions for the fit and for validation, each about its own equilibrium.
        rate: Sampling rate, in [Hz].
        duration: Of each motion, in [s].
        position_sigma, angle_sigma: Standard deviations of the pose noise, in [m] and [rad].
        seed: Of releases and noise.
    """

    truth: Mapping[str, float]
    motions: int
    validation: int
    rate: float
    duration: float
    position_sigma: float
    angle_sigma: float
    seed: int


def read_free_demo(file: Path, mechanism: Mechanism) -> FreeDemo | None:
    """The experiment of a robot on locked cables; None if the file is of another kind."""
    root = root_entry(read_yaml(file))
    if "free" not in root.mapping():
        return None
    fields = root.fields(("truth", "free"), required=("truth", "free"))
    scope = Scope()
    sizes = ("rate", "duration", "position_sigma", "angle_sigma")
    readers: dict[str, Callable[[Entry], Any]] = {
        "motions": Entry.count,
        "validation": Entry.count,
        **dict.fromkeys(sizes, scope.positive),
        "seed": lambda item: item.count(0),
    }
    truth = truth_of(fields["truth"], scope, mechanism)
    return FreeDemo(truth, **fields["free"].read(readers, required=readers))
