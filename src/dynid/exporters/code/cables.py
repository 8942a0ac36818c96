"""Length of a cable over its pulley, and angle of a swivel encoder, as expressions.

The equations are those of `kinematics.cable_kernels`. The gradient needs no angle: atan2 is used only where
the length itself is needed, which is where it is measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dynid.exporters.code.graph import Graph, Node
from dynid.exporters.code.vectors import Vector, dot


@dataclass(frozen=True, eq=False)
class Length:
    """A cable with its attachment at x, in the axes of its entry frame."""

    graph: Graph
    radius: float
    x: Vector

    @cached_property
    def _pulley(self) -> tuple[Node, Node, Node, Node]:
        """Rho, s, and unscaled sine and cosine of the wrap angle."""
        x, y, z = self.x
        rho = self.graph.call("sqrt", x * x + y * y)
        v = rho - self.radius
        s = self.graph.call("sqrt", v * v + z * z - self.radius * self.radius)
        return rho, s, self.radius * z + s * v, s * z - self.radius * v

    @cached_property
    def _turn(self) -> tuple[Node, Node]:
        """Sine and cosine of the wrap angle."""
        _, _, sine, cosine = self._pulley
        inverse = 1.0 / self.graph.call("sqrt", sine * sine + cosine * cosine)
        return sine * inverse, cosine * inverse

    def beyond(self, given: Node) -> Node:
        """Length minus a given one, in [m]."""
        if self.radius == 0.0:
            return self.graph.call("sqrt", dot(self.x, self.x)) - given
        _, s, sine, cosine = self._pulley
        psi = self.graph.atan2(sine, cosine)
        psi = psi + 2.0 * math.pi * self.graph.call("below", psi + 1e-9)
        return self.radius * psi + s - given

    @cached_property
    def gradient(self) -> Vector:
        """Per unit of x."""
        x, y, z = self.x
        if self.radius == 0.0:
            inverse = 1.0 / self.graph.call("sqrt", dot(self.x, self.x))
            return x * inverse, y * inverse, z * inverse
        sine, cosine = self._turn
        across = sine / self._pulley[0]
        return across * x, across * y, cosine

    def bias(self, rate: Vector, second: Vector) -> Node:
        """Second time derivative for first and second derivatives of x."""
        flat = rate[0] * rate[0] + rate[1] * rate[1]
        if self.radius == 0.0:
            along = dot(self.gradient, rate)
            whole = flat + rate[2] * rate[2] - along * along
            return dot(self.gradient, second) + whole / self.graph.call("sqrt", dot(self.x, self.x))
        rho, s, _, _ = self._pulley
        sine, cosine = self._turn
        out = (self.x[0] * rate[0] + self.x[1] * rate[1]) / rho
        away = (self.x[0] * second[0] + self.x[1] * second[1] + flat - out * out) / rho
        turn = (cosine * out - sine * rate[2]) / s
        return sine * away + cosine * second[2] + s * turn * turn


@dataclass(frozen=True, eq=False)
class Angle:
    """The direction of x about z."""

    graph: Graph
    x: Vector

    def beyond(self, given: Node) -> Node:
        """Angle minus a given one, within half a turn, in [rad]."""
        c, s = self.graph.call("cos", given), self.graph.call("sin", given)
        x, y, _ = self.x
        return self.graph.atan2(y * c - x * s, x * c + y * s)

    @cached_property
    def gradient(self) -> Vector:
        """Per unit of x."""
        x, y, _ = self.x
        inverse = 1.0 / (x * x + y * y)
        return -(y * inverse), x * inverse, self.graph.constant(0.0)

    def bias(self, rate: Vector, second: Vector) -> Node:
        """Second time derivative for first and second derivatives of x."""
        x, y, _ = self.x
        inverse = 1.0 / (x * x + y * y)
        turn = (x * rate[1] - y * rate[0]) * inverse
        stretch = (x * rate[0] + y * rate[1]) * inverse
        return (x * second[1] - y * second[0]) * inverse - 2.0 * (turn * stretch)
