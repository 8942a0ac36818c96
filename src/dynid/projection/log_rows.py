"""What all rows along a log have in common, their constructor first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.notices import Notice
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.projection.projection import Directions
from dynid.regressor.layout import Layout

if TYPE_CHECKING:
    from dynid.motion.motion import Motion


class LogRows:
    """Rows of one log by one model (a `RowSource`); a model prepares what it needs besides.

    Args:
        mechanism: The robot.
        parameters: Standard parameters, one per column.
        directions: Requested rows, with the efforts that act in them.
        motion: Filtered coordinates and efforts of the log.
        load_parameters: Standard parameters that predict the loads of load-dependent friction, or about which
            unknown angles of a sensor are linearised, shape (p,), SI; None: loads are one.
        options: Of the model, from `row_options` of its case.
    """

    layout: Layout

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        directions: Directions,
        motion: Motion,
        load_parameters: Float[Array, "p"] | None = None,
        **options: Any,
    ) -> None:
        self.mechanism, self.parameters, self.directions = mechanism, tuple(parameters), directions
        self.motion, self.dt = motion, motion.log.dt
        self.load_parameters, self.options = load_parameters, options
        self.notices: tuple[Notice, ...] = ()
        self.choices: dict[str, str] = {}
        self._prepare()

    def _prepare(self) -> None:
        """What the rows need before the first is computed, the layout among it."""
        raise NotImplementedError

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Ranges of samples over which rows may be filtered."""
        return self.motion.usable()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of start .. stop."""
        raise NotImplementedError

    def align_to(self, other: Any) -> None:
        """Take the directions of rows along nearly the same motion, where they are chosen by the motion."""

    def under(self, mechanism: Mechanism) -> LogRows:
        """The same rows of a robot that differs only in gravity."""
        return type(self)(
            mechanism, self.parameters, self.directions, self.motion, self.load_parameters, **self.options
        )
