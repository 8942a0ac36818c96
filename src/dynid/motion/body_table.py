"""BodyTable: motion of bodies and wrenches at their joints at time instants, as multibody programs print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.motion.log import Log

# Quantity -> its columns.
QUANTITIES = {
    "quaternion": ("qw", "qx", "qy", "qz"),
    "position": ("x", "y", "z"),
    "omega": ("wx", "wy", "wz"),
    "alpha": ("dwx", "dwy", "dwz"),
    "acceleration": ("ax", "ay", "az"),
    "centroid": ("acx", "acy", "acz"),
    "force": ("fx", "fy", "fz"),
    "moment": ("mx", "my", "mz"),
}
SPOKEN = {
    "quaternion": "attitude",
    "position": "position",
    "omega": "angular velocity",
    "alpha": "angular acceleration",
    "acceleration": "acceleration of the origin",
    "centroid": "acceleration of the centre of mass",
    "force": "force at the inner joint",
    "moment": "moment at the inner joint",
}
RATES = ("q", "dq", "ddq")


@dataclass(frozen=True, eq=False)
class BodyTable:
    """One row per body and time instant, as arrays; SI, axes as in the file.

    Axis letters: `n` instants, `b` bodies of the robot in file order, `c` entries of a quantity.

    Attributes:
        t: Time of each instant, shape (n,), in [s].
        runs: Number of the run that each instant belongs to, shape (n,).
        bodies: Names, in the order of the robot's description.
        present: Whether there is a row, shape (n, b).
        signals: Quantity (see `QUANTITIES`) -> values, shape (n, b, c); NaN where there is no row.
        figures: The same -> unit of the last printed digit, shape (n, b, c).
        joints: `q`, `dq`, `ddq` of the measured coordinates where the table has them, shape (n, m).
        joint_figures: The same -> unit of the last printed digit.
        file: Where it was read, for messages.
    """

    t: Float[Array, "n"]
    runs: Int[Array, "n"]
    bodies: tuple[str, ...]
    present: Bool[Array, "n b"]
    signals: Mapping[str, Float[Array, "n b c"]]
    figures: Mapping[str, Float[Array, "n b c"]]
    joints: Mapping[str, Float[Array, "n m"]] = field(default_factory=dict)
    joint_figures: Mapping[str, Float[Array, "n m"]] = field(default_factory=dict)
    file: str | None = None

    def disturbed(self, rng: np.random.Generator, copies: int = 1) -> BodyTable:
        """The same table with every number changed within its last digit, as rounding may have done.

        Equal printed numbers change equally: equal values have equal rounding errors.

        Args:
            rng: Source of the random changes.
            copies: How often; copies of an instant follow each other, and each is a run of its own.
        """

        def moved(values: Mapping[str, Array], figures: Mapping[str, Array]) -> dict[str, Array]:
            return {
                name: np.repeat(x, copies, axis=0)
                + np.repeat(figures[name], copies, axis=0) * _alike(x, rng, copies)
                for name, x in values.items()
            }

        whole = self.picked(np.repeat(np.arange(len(self.t)), copies))
        return replace(
            whole,
            runs=whole.runs * copies + np.tile(np.arange(copies), len(self.t)),
            signals=moved(self.signals, self.figures),
            joints=moved(self.joints, self.joint_figures),
        )

    def picked(self, instants: Int[Array, "k"]) -> BodyTable:
        """Some of the instants."""

        def chosen(values: Mapping[str, Array]) -> dict[str, Array]:
            return {name: x[instants] for name, x in values.items()}

        return replace(
            self,
            t=self.t[instants],
            runs=self.runs[instants],
            present=self.present[instants],
            signals=chosen(self.signals),
            figures=chosen(self.figures),
            joints=chosen(self.joints),
            joint_figures=chosen(self.joint_figures),
        )

    @property
    def figures_of(self) -> float:
        """Significant digits of the printed numbers: the median over forces."""
        force, unit = np.abs(self.signals["force"]), self.figures["force"]
        known = np.isfinite(force) & (force > 0) & (unit > 0)
        if not known.any():
            return 16.0
        return float(np.median(np.floor(np.log10(force[known])) - np.round(np.log10(unit[known])) + 1.0))


@dataclass(frozen=True, eq=False)
class TableLog(Log):
    """A table used as a recording: its time instants are samples, its wrenches the efforts.

    Attributes:
        table: The rows; None never occurs, a field after defaults needs one.
    """

    table: BodyTable | None = None

    @property
    def rows(self) -> BodyTable:
        """The table."""
        assert self.table is not None  # noqa: S101
        return self.table


def table_log(
    table: BodyTable,
    name: str,
    *,
    sha256: str | None = None,
    payloads: tuple[str, ...] = (),
    **details: object,
) -> TableLog:
    """The log of a table; `details` are notices, choices and mapping, as of any log."""
    n, b = table.present.shape
    wrenches = np.concatenate([table.signals["force"], table.signals["moment"]], axis=2)
    columns = (*QUANTITIES["force"], *QUANTITIES["moment"])
    return TableLog(
        name=name,
        file=table.file,
        sha256=sha256,
        t=table.t,
        q=np.zeros((n, 0)),
        dq=None,
        ddq=None,
        tau=wrenches.reshape(n, 6 * b),
        effort_present=np.repeat(table.present.any(axis=0), 6),
        position_names=(),
        effort_names=tuple(f"{body} {column}" for body in table.bodies for column in columns),
        segments=((0, n),),
        dt=INSTANT if n <= _MOST_BLOCKS else _BLOCK_SECONDS / -(-n // _MOST_BLOCKS),
        valid=np.ones(n, dtype=bool),
        payloads=payloads,
        table=table,
        **details,  # type: ignore[arg-type]
    )


def _alike(x: Float[Array, "n *c"], rng: np.random.Generator, copies: int) -> Float[Array, "m *c"]:
    """Numbers from -0.5 to 0.5, in each copy the same one for all equal entries of a column."""
    columns = x.reshape(len(x), -1)
    draws = np.empty((len(x) * copies, columns.shape[1]))
    for k, column in enumerate(columns.T):
        values, place = np.unique(column, return_inverse=True)
        draws[:, k] = (rng.random((len(values), copies)) - 0.5)[place.reshape(-1)].ravel()
    return draws.reshape(-1, *x.shape[1:])


# Used as time step where there is none: so long that every instant is its own block when rows are
# condensed; in longer tables several instants share a block.
INSTANT = 1.0
_MOST_BLOCKS, _BLOCK_SECONDS = 384, 0.25
