"""Reader of NAME.demo.yaml: the true parameters and the simulated experiment of a built-in robot.

truth:   bodies: {BODY: {M, com, central: {XX ...}}}   central: about the centre of mass
                                                       or `description`: the robot's own priors
         drive: {JOINT: {Fv: ...}}
log:     rate [Hz], periods and runs, encoder [rad, m], torque_sigma [N m, N]: one number or one per joint
motion:  harmonics, frequency [Hz], draws, seed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.entry import Entry, root_entry
from dynid.errors import InputError, nearest
from dynid.mechanism.inertia import SYMBOLS, from_centre_of_mass, is_physical
from dynid.mechanism.mechanism import DRIVE_SYMBOLS, Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.scope import Scope
from dynid.strict_yaml import read_yaml


@dataclass(frozen=True, eq=False)
class Demo:
    """The built-in experiment of a robot.

    Attributes:
        truth: Every standard parameter by name, SI.
        rate: Samples a second, in [Hz].
        periods: Periods of the motion in each log.
        runs: Logs for identification; one more is made for validation.
        encoder: Resolution of each measured position, shape (m,), in [rad] or [m].
        torque_sigma: Deviation of each effort's noise, shape (a,), in [N m] or [N].
        harmonics, frequency, draws, seed: Of the motion, see `random_fourier`.
    """

    truth: Mapping[str, float]
    rate: float
    periods: int
    runs: int
    encoder: Float[Array, "m"]
    torque_sigma: Float[Array, "a"]
    harmonics: int
    frequency: float
    draws: int
    seed: int


def read_demo(file: Path, mechanism: Mechanism) -> Demo:
    """Read and check the experiment of `mechanism`; every standard parameter must get a value."""
    root = root_entry(read_yaml(file))
    fields = root.fields(("symbols", "truth", "log", "motion"), required=("truth", "log", "motion"))
    scope = Scope()
    if "symbols" in fields:
        scope.declare(fields["symbols"])
    log_keys = ("rate", "periods", "runs", "encoder", "torque_sigma")
    log = fields["log"].fields(log_keys, required=log_keys)
    motion_keys = ("harmonics", "frequency", "draws", "seed")
    motion = fields["motion"].fields(motion_keys, required=motion_keys)
    return Demo(
        truth=_truth(fields["truth"], scope, mechanism),
        rate=_positive(log["rate"], scope),
        periods=log["periods"].count(),
        runs=log["runs"].count(),
        encoder=_per(log["encoder"], scope, mechanism.measured_positions),
        torque_sigma=_per(log["torque_sigma"], scope, [one.name for one in mechanism.actuators]),
        harmonics=motion["harmonics"].count(3),
        frequency=_positive(motion["frequency"], scope),
        draws=motion["draws"].count(),
        seed=motion["seed"].count(0),
    )


def _truth(entry: Entry, scope: Scope, mechanism: Mechanism) -> dict[str, float]:
    fields = entry.fields(("bodies", "drive"), required=("bodies",))
    values = _bodies(fields["bodies"], scope, mechanism)
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
        if name not in mechanism.bodies:
            raise item.error(f"unknown body '{name}'" + nearest(name, mechanism.bodies))
        chi = _ten_parameters(item, scope)
        if not is_physical(chi):
            raise item.error(f"no body has the parameters given for '{name}'", "check com and central")
        values |= {f"{symbol}_{name}": float(x) for symbol, x in zip(SYMBOLS, chi, strict=True)}
    return values


def _ten_parameters(entry: Entry, scope: Scope) -> Float[Array, "10"]:
    fields = entry.fields(("M", "com", "central"), required=("M", "central"))
    com = np.array(fields["com"].vector(scope.number)) if "com" in fields else np.zeros(3)
    given = fields["central"].fields(SYMBOLS[:6], required=("XX", "YY", "ZZ"))
    central = np.zeros((3, 3))
    for symbol, item in given.items():
        i, j = ("XYZ".index(letter) for letter in symbol)
        central[i, j] = central[j, i] = scope.number(item)
    return from_centre_of_mass(_positive(fields["M"], scope), com, central)


def _drive(entry: Entry, scope: Scope, mechanism: Mechanism) -> dict[str, float]:
    values = {}
    for owner, item in entry.mapping().items():
        if owner not in mechanism.drive:
            raise item.error(f"'{owner}' has no drive terms" + nearest(owner, mechanism.drive))
        declared = [symbol for symbol in DRIVE_SYMBOLS if symbol in mechanism.drive[owner]]
        for symbol, number in item.fields(declared, required=declared).items():
            values[f"{symbol}_{owner}"] = scope.number(number)
    return values


def _per(entry: Entry, scope: Scope, names: Sequence[str]) -> Float[Array, "c"]:
    """One number for all, or one for each of `names`."""
    if not entry.is_mapping:
        return np.full(len(names), _positive(entry, scope))
    fields = entry.fields(names, required=names)
    return np.array([_positive(fields[name], scope) for name in names])


def _positive(entry: Entry, scope: Scope) -> float:
    value = scope.number(entry)
    if value <= 0.0:
        raise entry.error(f"{value:g} is not positive", "give a positive number")
    return value


def demo_file(name: str) -> Path:
    """The experiment file of a built-in robot; a robot without one is refused."""
    from importlib.resources import files

    path = Path(str(files("dynid.robots"))) / f"{name}.demo.yaml"
    if not path.is_file():
        known = sorted(one.name.removesuffix(".demo.yaml") for one in path.parent.glob("*.demo.yaml"))
        raise InputError(
            f"no built-in experiment '{name}'" + nearest(name, known), remedy="see 'dynid robots'"
        )
    return path
