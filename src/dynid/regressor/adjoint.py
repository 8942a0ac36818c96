"""Rows of the tree and their reverse pass: from weights of all entries to derivatives along the motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS, SMOOTHED
from dynid.mechanism.mechanism import Mechanism, Term
from dynid.mechanism.parameters import Parameter
from dynid.regressor.layout import TreeRegressor, tree_regressor

_STEP = 1e-30  # of the complex step: far below rounding, so that no digit is lost


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives of a scalar with respect to the motion of all tree coordinates at every sample.

    Attributes:
        q: For a small step (or rotation, in the moving frame) along each velocity coordinate, shape (n, v).
        dq, ddq: With respect to velocities and accelerations, shape (n, v).
    """

    q: Float[Array, "n v"]
    dq: Float[Array, "n v"]
    ddq: Float[Array, "n v"]


class AdjointRegressor:
    """Entries of all rows W_tree, and derivatives of weighted sums of them.

    Args:
        widths: Speeds over which the jumps of friction are smoothed, per coordinate and then per
            actuator, shape (v + a,), in [rad/s] or [m/s]; None: no smoothing.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        mounted: Sequence[str] = (),
        widths: Float[Array, "s"] | None = None,
    ) -> None:
        rows = np.eye(len(mechanism.coordinates))
        self.tree: TreeRegressor = tree_regressor(mechanism, parameters, rows, mounted)
        self.layout = self.tree.layout
        _, numbers, sources, _, _ = self.tree.drives
        smooth = np.isin(numbers, [DRIVE_SYMBOLS.index(symbol) for symbol in SMOOTHED])
        self.widths = np.zeros(len(sources)) if widths is None else np.where(smooth, widths[sources], 0.0)
        self._soft = bool(np.any(self.widths > 0.0))

    def packed(
        self,
        q: Float[Array, "n q"],
        dq: Float[Array, "n v"],
        ddq: Float[Array, "n v"],
        load: Float[Array, "n s"] | None = None,
    ) -> Float[Array, "e n"]:
        """Entries of all rows of the tree, friction smoothed where requested; load as in `TreeRegressor`."""
        out = self.tree.packed(q, dq, ddq, np.zeros_like(dq), load)
        if self._soft:
            from dynid.regressor.drive_kernels import soften

            soften(self.tree.drives, self._sources(dq), self.widths, out)
        return out

    def slopes(
        self,
        q: Float[Array, "n q"],
        dq: Float[Array, "n v"],
        ddq: Float[Array, "n v"],
        weights: Float[Array, "e n"],
    ) -> Slopes:
        """Derivatives of sum_e weights_e W_e, sample by sample; loads of friction are taken as constants."""
        from dynid.regressor.adjoint_kernels import reverse
        from dynid.regressor.drive_kernels import reverse_drives

        tree = self.tree.tree
        links = (tree.parent, tree.kind, tree.q_start, tree.v_start, tree.placement)
        bodies = (tree.body_link, tree.body_frame)
        q, dq, ddq, weights = (np.ascontiguousarray(x, dtype=float) for x in (q, dq, ddq, weights))
        out = np.zeros((3, *dq.shape))
        reverse(links, bodies, tree.gravity, self.tree.pairs, q, dq, ddq, weights, out[0], out[1], out[2])
        n_v = dq.shape[1]
        if len(self.tree.drives[0]):
            rates = self._sources(dq)
            first, second = np.zeros_like(rates), np.zeros_like(rates)
            reverse_drives(self.tree.drives, rates, self.widths, weights, first, second)
            for at, slope in ((1, first), (2, second)):
                out[at] += slope[:, :n_v]
                if self.tree.uses_actuators:
                    out[at] += slope[:, n_v:] @ self.tree.actuator_map
        for entry, term in zip(self.tree.given_entries.tolist(), self.tree.terms, strict=False):
            self._add_term(term, (q, dq, ddq), weights[entry], out)
        return Slopes(*out)

    def _sources(self, dq: Float[Array, "n v"]) -> Float[Array, "n s"]:
        return np.hstack([dq, dq @ self.tree.actuator_map.T]) if self.tree.uses_actuators else dq

    def _add_term(
        self,
        term: Term,
        motion: tuple[Array, Array, Array],
        weight: Float[Array, "n"],
        out: Float[Array, "3 n v"],
    ) -> None:
        """A declared extra column: the complex step along each signal that it uses."""
        kinds = {"q": 0, "dq": 1, "ddq": 2}
        for kind, name in term.expression.signals:

            def signal(other: str, coordinate: str, kind: str = kind, name: str = name) -> Array:
                names = self.tree.positions if other == "q" else self.tree.coordinates
                value = motion[kinds[other]][:, names.index(coordinate)]
                return value + 1j * _STEP if (other, coordinate) == (kind, name) else value

            value = np.broadcast_to(term.expression.evaluate({}, signal), weight.shape)
            at = self.tree.coordinates.index(name)
            out[kinds[kind], :, at] += weight * np.imag(value) / _STEP
