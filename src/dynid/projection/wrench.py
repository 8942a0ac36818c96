"""Model `wrench`: six equations per body, its own Newton-Euler balance in body axes [Wrench, eq. 1, 2].

    W_body(omega, dV) chi_body = X_inner [F; M]  -  sum over children X_c [F_c; M_c]

[F; M] is the wrench that the parent exerts at the origin of the body's inner joint frame, [F_c; M_c] the
wrench that the body exerts on child c at the origin of c's joint frame. X transforms a wrench given in the
world to the body's origin and axes. Joints may be anywhere and a body may have any number of children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.body_table import BodyTable, TableLog
from dynid.motion.motion import Motion
from dynid.motion.settings import BODY, JOINT, PARENT, WrenchSettings
from dynid.projection.factor import Factor, factor_rows
from dynid.projection.model import LogRows, Model
from dynid.projection.projection import Directions
from dynid.projection.wrench_motion import joint_points, levers, table_motion
from dynid.regressor.layout import ABSENT, Layout
from dynid.regressor.wrench import body_kernel, carried_kernel

_COLUMNS = ("fx", "fy", "fz", "mx", "my", "mz")
_SEED = 20200311
_STATES = 12  # random motions of a free body: 72 rows for ten columns


def wrench_directions(mechanism: Mechanism) -> Directions:
    """Six rows of every body that has parameters, with the wrenches of its own and its children's joints."""
    bodies = list(mechanism.bodies)
    used = balanced_bodies(mechanism)
    effort_map = np.zeros((6 * len(used), 6 * len(bodies)))
    for i, body in enumerate(used):
        felt = [body, *children(mechanism, body)]
        for member in felt:
            at = 6 * bodies.index(member)
            effort_map[6 * i : 6 * i + 6, at : at + 6] = 1.0
    return Directions(
        tuple(f"{body} {column}" for body in used for column in _COLUMNS),
        ("N", "N", "N", "N m", "N m", "N m") * len(used),
        None,
        effort_map,
        jumps=False,
        groups=tuple(f"{body} {kind}" for body in used for kind in ("force",) * 3 + ("moment",) * 3),
    )


def balanced_bodies(mechanism: Mechanism) -> list[str]:
    """Bodies whose balance is used: those with parameters of their own or with a payload."""
    carriers = {payload.body for payload in mechanism.payloads.values()}
    return [name for name, body in mechanism.bodies.items() if body.parameters or name in carriers]


def children(mechanism: Mechanism, body: str) -> list[str]:
    """Children of a body."""
    return [joint.child for joint in mechanism.joints if joint.parent == body]


@dataclass(frozen=True, eq=False)
class _Block:
    """The equations of one body: which columns of which kernels, and their places.

    Attributes:
        body: Its number.
        entries: Entries of the body's ten that have a column.
        payloads: Mounted payloads, each with the entries of its ten that have a column.
        columns: Parameters of a row's entries, those of the body first.
    """

    body: int
    entries: tuple[int, ...]
    payloads: tuple[tuple[str, tuple[int, ...]], ...]
    columns: tuple[int, ...]


class WrenchRows(LogRows):
    """Balances of the bodies of a table, in place of a log; the samples are its instants.

    Its option is `settings`, how the table is to be read. These equations have no friction and no loads.
    """

    def _prepare(self) -> None:
        mechanism, motion = self.mechanism, self.motion
        if not isinstance(motion.log, TableLog):
            raise TypeError("the model 'wrench' needs a table of bodies")
        self.settings: WrenchSettings = self.options.get("settings") or WrenchSettings()
        self.table = motion.log.rows
        self.moved = table_motion(mechanism, self.table, self.settings)
        self.points = joint_points(mechanism, self.table, self.moved, balanced_bodies(mechanism))
        self.forces, self.moments = self._wrenches()
        self.blocks = self._blocks(motion.log.payloads)
        self.layout = _layout(self.blocks)
        self.notices = self.moved.notices
        self.choices = {"table read as": self.settings.words, **self.moved.choices}

    def pieces(self) -> Sequence[tuple[int, int]]:
        """All instants: nothing is filtered."""
        return [(0, len(self.table.t))]

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of instants."""
        for at in range(start, stop, tile):
            part = slice(at, min(at + tile, stop))
            packed = np.zeros((self.layout.n_entries, part.stop - at))
            weights = np.ones((6 * len(self.blocks), part.stop - at))
            place = 0
            for k, block in enumerate(self.blocks):
                fine = self._fine(block.body, part)
                Y = self.balance(block.body, part)
                entries = np.concatenate([self._columns(block, part), Y[..., None]], axis=2)
                size = 6 * entries.shape[2]
                known = np.where(fine[:, None], entries.reshape(len(fine), size), 0.0)
                packed[place : place + size] = known.T
                weights[6 * k : 6 * k + 6] = fine
                place += size
            yield at, packed, weights

    def balance(self, body: int, part: slice) -> Float[Array, "n 6"]:
        """Wrench on a body at its joints, about its origin, body axes, shape (n, 6), in [N], [N m]."""
        name = self.table.bodies[body]
        R = self.moved.R[part, body]
        total = self._about_origin(R, body, self.points.inner[body], part)
        for child in children(self.mechanism, name):
            number = self.table.bodies.index(child)
            total = total - self._about_origin(R, number, self.points.outer[number][part], part)
        return total

    def _about_origin(
        self, R: Float[Array, "n 3 3"], body: int, point: Float[Array, "*n 3"], part: slice
    ) -> Float[Array, "n 6"]:
        """The wrench of a body's inner joint, in axes R and about an origin; `point` is relative to it."""
        force = np.einsum("nji,nj->ni", R, self.forces[part, body])
        moment = np.einsum("nji,nj->ni", R, self.moments[part, body])
        return np.concatenate([force, moment + np.cross(point, force)], axis=1)

    def _columns(self, block: _Block, part: slice) -> Float[Array, "n 6 c"]:
        """Columns of the body's own parameters, then of the payloads it carries."""
        omega, alpha = self.moved.omega[part, block.body], self.moved.alpha[part, block.body]
        R = self.moved.R[part, block.body]
        a = np.einsum("nji,nj->ni", R, self.moved.a[part, block.body] - self.mechanism.gravity)
        kernels = [body_kernel(omega, alpha, a)[..., list(block.entries)]]
        for name, entries in block.payloads:
            frame = self.mechanism.payloads[name].frame
            kernels.append(carried_kernel(omega, alpha, a, frame)[..., list(entries)])
        return np.concatenate(kernels, axis=2)

    def _fine(self, body: int, part: slice) -> Float[Array, "n"]:
        """1 where the body's motion and every wrench on it are known."""
        fine = self.moved.fine[part, body].copy()
        for child in children(self.mechanism, self.table.bodies[body]):
            number = self.table.bodies.index(child)
            fine &= self.table.present[part, number]
            fine &= np.all(np.isfinite(self.points.outer[number][part]), axis=1)
        return fine.astype(float)

    def _wrenches(self) -> tuple[Float[Array, "n b 3"], Float[Array, "n b 3"]]:
        """Forces and moments that parents exert at the origins of the joints, world axes."""
        force, moment = self.table.signals["force"], self.table.signals["moment"]
        if self.settings.axes_of("wrench") == BODY:
            force, moment = (np.einsum("nbij,nbj->nbi", self.moved.R, x) for x in (force, moment))
        if self.settings.at != JOINT:
            lever = levers(self.mechanism, self.table, self.moved, self.points.inner, self.settings)
            moment = moment + np.cross(lever, force)
        sign = 1.0 if self.settings.exerted_by == PARENT else -1.0
        return sign * force, sign * moment

    def _blocks(self, mounted: Sequence[str]) -> tuple[_Block, ...]:
        index = {parameter.name: i for i, parameter in enumerate(self.parameters)}
        names = dict.fromkeys(name.rsplit(" ", 1)[0] for name in self.directions.names)
        blocks = []
        for name in names:
            carried = [p for p in mounted if self.mechanism.payloads[p].body == name]
            entries = {owner: entries_of(owner, index) for owner in (name, *carried)}
            columns = [index[f"{SYMBOLS[i]}_{owner}"] for owner, picked in entries.items() for i in picked]
            of_body = entries.pop(name)
            blocks.append(
                _Block(self.table.bodies.index(name), of_body, tuple(entries.items()), tuple(columns))
            )
        return tuple(blocks)

    def like(self, table: BodyTable, settings: WrenchSettings | None = None) -> WrenchRows:
        """The same equations with another table, or the same one read otherwise."""
        assert isinstance(self.motion.log, TableLog)  # noqa: S101 (refused when these rows were made)
        motion = Motion(replace(self.motion.log, table=table), self.motion.plan)
        return WrenchRows(
            self.mechanism, self.parameters, self.directions, motion, settings=settings or self.settings
        )


def entries_of(owner: str, index: dict[str, int]) -> tuple[int, ...]:
    """Which of an owner's ten have a column."""
    return tuple(i for i, symbol in enumerate(SYMBOLS) if f"{symbol}_{owner}" in index)


def _layout(blocks: Sequence[_Block]) -> Layout:
    """Six rows per body, each with all of its columns, and Y."""
    columns: list[int] = []
    start = [0]
    for block in blocks:
        for _ in range(6):
            columns += [*block.columns, ABSENT]
            start.append(len(columns))
    return Layout(np.array(start, dtype=np.int64), np.array(columns, dtype=np.int64))


# Structural identifiability from the balance of a freely moving body.


def wrench_structure(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    directions: Directions | None,
    *,
    loads: Sequence[tuple[str, ...]] = ((),),
    stretch: float = 1.0,
    rows_per_column: float = 4.0,  # not used: few states are drawn anyway
    seed: int = _SEED,
) -> Factor:
    """Factor of the balances of freely moving bodies.

    A body's balance does not depend on its joints; motion that these prevent shows in the data.

    Args:
        directions: Not used: all six equations of a body are used.
        loads: Payloads mounted in each kind of table: only tables with and without separate them.
    """
    rng = np.random.default_rng(seed)
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    rows = []
    for mounted in dict.fromkeys(loads):
        for body in balanced_bodies(mechanism):
            omega, alpha, a = stretch * rng.normal(size=(3, _STATES, 3))
            W = np.zeros((6 * _STATES, len(parameters)))
            _place(W, body, body_kernel(omega, alpha, a), index)
            for name in mounted:
                payload = mechanism.payloads[name]
                if payload.body == body:
                    _place(W, name, carried_kernel(omega, alpha, a, payload.frame), index)
            rows.append(W)
    whole = np.concatenate(rows)
    return factor_rows(whole, np.zeros(len(whole)))


def _place(W: Float[Array, "r p"], owner: str, kernel: Float[Array, "n 6 10"], index: dict[str, int]) -> None:
    for i in entries_of(owner, index):
        W[:, index[f"{SYMBOLS[i]}_{owner}"]] = kernel[:, :, i].ravel()


WRENCH = Model(
    "wrench",
    "six equations per body, from tables of body motion and joint wrenches",
    wrench_directions,
    WrenchRows,
    wrench_structure,
    case="wrench_table",
    measures="wrench",
    effort_rows=True,
    per_body=True,
)
