"""The contract of an exporter: files written, and the efforts of what they hold, read back.

exporter(estimate, mechanism, folder) -> Exported, or a plain list of files

The priors of the mechanism (`prior_values`) are a full set of parameters with the efforts of the estimate.
`program` may be empty: then `read_back` sets the attribute `program` of the function that it returns. Its
attribute `rows`, if there is one, gives N^T f, what moves the free directions (`states.py`).

What all exporters of models share: values, names of files, header, difference to the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from dynid import __version__
from dynid.common.arrays import Array, Float
from dynid.exporters.link_tree import body_values
from dynid.mechanism.frame import identity_frame
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.mechanism.parameters import Parameter, known_columns, parameter_table, prior_values
from dynid.statistics.estimate import Estimate

# Positions, velocities and accelerations of the measured coordinates, each of shape (n, m), in SI -> efforts
# of the actuators, shape (n, a), in [N m] or [N].
EffortsOf = Callable[[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]], Float[Array, "n a"]]


@dataclass(frozen=True)
class Exported:
    """What an exporter wrote.

    Attributes:
        files: Files written, the main file first.
        read_back: Loads or compiles the written files and gives their efforts; None: there are none.
        program: Program that reads them back, with its version.
        not_representable: One sentence for each part of the estimate that the format cannot hold.
        alone: Efforts of the main file without the terms that are written beside it; None: it holds all.
        payloads: Mounted on the robot that the files describe.
    """

    files: tuple[Path, ...]
    read_back: Callable[[], EffortsOf] | None = None
    program: str = ""
    not_representable: tuple[str, ...] = ()
    alone: Callable[[], EffortsOf] | None = None
    payloads: tuple[str, ...] = ()


Exporter = Callable[[Estimate, Mechanism, Path], Exported | Sequence[Path]]


CERTIFICATE = "certificate: "
_PLACEHOLDER = "CERTIFICATE-OF-DYNID"


@dataclass(frozen=True, eq=False)
class Described:
    """An estimate and the robot that has its values as priors (see `full_set`)."""

    estimate: Estimate | None
    mechanism: Mechanism

    @classmethod
    def of(cls, mechanism: Mechanism) -> Described:
        """A robot alone."""
        return cls(None, mechanism)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Standard parameters, payloads mounted."""
        return parameter_table(self.mechanism)

    @cached_property
    def chi(self) -> Float[Array, "p"]:
        """Their values, shape (p,), SI."""
        values = prior_values(self.mechanism)
        known = known_columns(self.mechanism, self.parameters)
        return np.array([values.get(p.name, known.get(i, 0.0)) for i, p in enumerate(self.parameters)])

    @cached_property
    def values(self) -> dict[str, float]:
        """The same by name."""
        return {p.name: float(x) for p, x in zip(self.parameters, self.chi, strict=True)}

    def body(self, name: str) -> Float[Array, "10"] | None:
        """Ten parameters of a body in its own frame; None: it has none."""
        return body_values(self.mechanism, name, identity_frame())

    def source(self, *endings: str) -> Path | None:
        """The file of the description that is edited; None: it is not of this format."""
        if not self.mechanism.sources:
            return None
        path = Path(self.mechanism.sources[0])
        return path if path.suffix.lower() in endings and path.is_file() else None

    def rounded_angles(self) -> list[str]:
        """What to know where the description has rounded angles, which stay in its file."""
        if not any(notice.code == "snapped-angle" for notice in self.mechanism.notices):
            return []
        return [
            "exact angles: the description has rounded multiples of 15 degrees (such as 1.5708), which dynid"
            " reads as exact and other programs as written; efforts differ by that much"
        ]

    def difference(self, source: Path, file: Path) -> Path:
        """Write NAME.ENDING.diff, the unified difference to the source."""
        from dynid.checks.summary import difference

        before, after = (path.read_text(encoding="utf-8", errors="replace") for path in (source, file))
        made = file.with_name(f"{file.name}.diff")
        made.write_text(difference(before, after, source.name, file.name), encoding="utf-8")
        return made


def named_file(folder: Path, mechanism: Mechanism, ending: str) -> Path:
    """NAME with an ending, in a folder; characters that a file name should not have become underscores."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", mechanism.name).strip("._-")
    return folder / f"{stem[:80] or 'robot'}{ending}"


def header_lines(described: Described) -> list[str]:
    """Where the numbers are from; the certificate is filled in after the file was read back."""
    estimate = described.estimate
    assert estimate is not None  # noqa: S101  (only results are exported)
    lines = [
        f"Written by dynid {__version__} from a result of robot '{estimate.robot}':",
        f"model {estimate.model}, estimator {estimate.estimator},"
        f" residual of the fit {estimate.fit.residual_percent:.3g} % (noise included).",
        *([estimate.choices["export"]] if estimate.choices.get("export") else []),
    ]
    return [*lines, f"{CERTIFICATE}{_PLACEHOLDER}"]


def fill_certificate(file: Path, text: str) -> None:
    """Put the certificate into the header of a written file, if it has a place for it."""
    data = file.read_bytes()
    if _PLACEHOLDER.encode() in data:
        safe = re.sub(r"-(?=-)", "- ", re.sub(r"[\r\n]+", " ", text)).replace("*/", "* /")
        file.write_bytes(data.replace(_PLACEHOLDER.encode(), safe.encode(), 1))


def static_bodies(mechanism: Mechanism) -> set[str]:
    """Bodies that never move: their parameters have no effect and stay as they are."""
    static = {BASE}
    for joint in mechanism.joints:
        if joint.kind is JointKind.FIXED and joint.parent in static:
            static.add(joint.child)
    return static - {BASE}
