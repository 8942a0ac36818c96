"""True parameters of a simulated robot: its priors, its built-in experiment, a file, or values by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.common.entry import root_entry
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.common.strict_json import read_json
from dynid.common.strict_yaml import read_yaml
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Body, Mechanism, Payload
from dynid.mechanism.parameters import parameter_table, prior_values
from dynid.mechanism.robot_file.scope import Scope

if TYPE_CHECKING:
    from dynid.robots.demo_file import Demo, FreeDemo

SCHEMA = "dynid.truth/1"


@dataclass(frozen=True, eq=False)
class Truth:
    """Source of the true parameters.

    Attributes:
        source: `demo` (of a built-in robot), `prior` (of the description), or a file: `dynid.truth/1` as
            JSON, or YAML with names and values; None: demo if there is one, else prior.
        values: Standard name or glob -> value that overrides the source, SI.
    """

    source: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)


def true_values(
    mechanism: Mechanism, truth: Truth, mounted: Collection[str] | None = None, *, wrenches: bool = False
) -> tuple[dict[str, float], tuple[Notice, ...]]:
    """Every standard parameter by name, SI.

    A body without inertia is an error. Zero without a value are inertial parameters that have no effect, and,
    with a notice, drive terms and payloads that are not mounted.

    Args:
        mechanism: The robot.
        truth: Where the values are from.
        mounted: Payloads that are mounted at some time; None: all.
        wrenches: Whether the wrench of each body is of interest; else only efforts and free motion are.
    """
    given = {**_source(mechanism, truth), **_known(mechanism), **_by_pattern(mechanism, truth.values)}
    names = [parameter.name for parameter in parameter_table(mechanism)]
    missing = [name for name in names if name not in given]
    inertial = [name for name in missing if name.partition("_")[0] in SYMBOLS]
    if inertial and not wrenches:
        from dynid.info import describe

        idle = describe(mechanism, payloads=tuple(mechanism.payloads)).eliminated
        missing, inertial = ([name for name in group if name not in idle] for group in (missing, inertial))
    absent = [] if mounted is None else [name for name in mechanism.payloads if name not in mounted]
    inertial = [name for name in inertial if name.partition("_")[2] not in absent]
    if inertial:
        raise InputError(
            f"robot '{mechanism.name}' has no true values for {len(inertial)} inertial parameters:"
            f" {', '.join(inertial[:6])}{' ...' if len(inertial) > 6 else ''}",
            file=mechanism.file,
            remedy="give `prior:` for the bodies, or a file of true values (--truth, `truth:`)",
        )
    values = {name: float(given.get(name, 0.0)) for name in names}
    if not missing:
        return values, ()
    shown = ", ".join(missing[:6]) + (" ..." if len(missing) > 6 else "")
    return values, (notice("no-drive-values", names=shown),)


def believed_values(
    mechanism: Mechanism, values: Mapping[str, float], beliefs: str
) -> tuple[dict[str, float], tuple[Notice, ...]]:
    """Parameters of the controller model: the priors (zero if missing), or the true parameters."""
    priors = {**prior_values(mechanism), **_known(mechanism)} if beliefs == "prior" else {}
    if not any(name.startswith("M_") for name in priors):
        if beliefs == "prior":
            return dict(values), (notice("no-priors"),)
        return dict(values), ()
    return {name: priors.get(name, 0.0) for name in values}, ()


def read_truth(path: Path) -> dict[str, float]:
    """Values by name of a `dynid.truth/1` file, or of YAML with names and values."""
    if path.suffix.lower() == ".json":
        document = read_json(path, "check the path; give a file written by simulate")
        if document.get("schema") != SCHEMA:
            raise InputError(f"is not a '{SCHEMA}' file", file=path, remedy="give a file written by simulate")
        return _numbers(document.get("parameters"), path)
    scope = Scope()
    return {name: scope.number(entry) for name, entry in root_entry(read_yaml(path)).mapping().items()}


def _numbers(given: object, path: Path) -> dict[str, float]:
    """Names with numbers; true and false are not numbers."""
    if not isinstance(given, dict):
        raise InputError("'parameters' has no names with values", file=path, remedy='e.g. {"M_arm": 2.5}')
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{value!r:.60} is not a number", file=path, place=f"parameters.{name}")
    return {name: float(value) for name, value in given.items()}


def _source(mechanism: Mechanism, truth: Truth) -> dict[str, float]:
    from dynid.robots.demo_file import read_demo

    source = truth.source
    if source is None:
        source = "demo" if has_demo(mechanism) else "prior"
    if source == "prior":
        return prior_values(mechanism)
    if source == "demo":
        # Of the built-in robot: an experiment may have given it other payloads or drive terms.
        free = built_in_free(mechanism)
        return dict((free or _read_demo(mechanism.name)).truth)
    path = Path(source)
    if path.name.endswith(".demo.yaml"):
        return dict(read_demo(path, mechanism).truth)
    return _by_pattern(mechanism, read_truth(path), path)


def _by_pattern(
    mechanism: Mechanism, values: Mapping[str, float], file: Path | None = None
) -> dict[str, float]:
    """Values of names and globs, each for all standard parameters that it matches; the last one counts."""
    names = [parameter.name for parameter in parameter_table(mechanism)]
    given: dict[str, float] = {}
    unknown = []
    for pattern, value in values.items():
        matched = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        given |= dict.fromkeys(matched, value)
        unknown += [] if matched else [pattern]
    if unknown:
        listed = ", ".join(f"'{pattern}'" for pattern in unknown[:6]) + (" ..." if len(unknown) > 6 else "")
        raise InputError(
            f"robot '{mechanism.name}' has no parameter {listed}" + nearest(unknown[0], names),
            file=file,
            place=None if file else "truth",
            remedy="see `dynid info` for the names",
        )
    return given


def built_in_free(mechanism: Mechanism) -> FreeDemo | None:
    """The experiment of a built-in robot that swings on locked cables; None for any other."""
    return _read_free_demo(mechanism.name) if has_demo(mechanism) else None


def built_in_demo(mechanism: Mechanism) -> Demo | None:
    """The experiment of an actuated built-in robot; None for any other."""
    if not has_demo(mechanism) or built_in_free(mechanism) is not None:
        return None
    return _read_demo(mechanism.name)


@cache
def _read_free_demo(name: str) -> FreeDemo | None:
    """Files of the package do not change: each is read once."""
    from dynid.robots.demo_file import demo_file, read_free_demo

    return read_free_demo(demo_file(name), load_robot(name))


@cache
def _read_demo(name: str) -> Demo:
    from dynid.robots.demo_file import demo_file, read_demo

    return read_demo(demo_file(name), load_robot(name))


def has_demo(mechanism: Mechanism) -> bool:
    """Whether it is a built-in robot with an experiment."""
    from importlib.resources import files

    folder = Path(str(files("dynid.robots")))
    return (
        mechanism.file is not None
        and (folder / f"{mechanism.name}.demo.yaml").is_file()
        and (Path(mechanism.file).resolve().parent == folder.resolve())
    )


def _known(mechanism: Mechanism) -> dict[str, float]:
    """Known values of the description are the true values."""
    owners: list[Body | Payload] = [*mechanism.bodies.values(), *mechanism.payloads.values()]
    return {f"{symbol}_{owner.name}": value for owner in owners for symbol, value in owner.known.items()}
