"""Coordinates of a robot as expressions of the measured ones: a tree directly, a closed robot by its loops.

Arrays of the generated functions: measured positions `q` and their derivatives, and the `pose` of all joints
where loops have to be solved for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.exporters.code.bodies import Bodies, bodies_at
from dynid.exporters.code.graph import (
    Graph,
    Matrix,
    Node,
    Vector,
    apply,
    back_substituted,
    constants,
    dot,
    orthogonal,
    plus,
    quaternion_rates,
    times,
    transposed,
    turned,
    unit,
)
from dynid.exporters.code.loops import Loops, Solution, empty, plan_for, spherical_places
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.sensors import sensors_of
from dynid.kinematics.tree import PRISMATIC, REVOLUTE, tree_of
from dynid.mechanism.mechanism import Mechanism

Q, DQ, DDQ, POSE = "q", "dq", "ddq", "pose"


@dataclass(frozen=True, eq=False)
class Function:
    """A straight-line function.

    Attributes:
        name: Without the robot's.
        inputs: Names of its input arrays.
        outputs: Array -> expressions of its entries.
        about: What it gives.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: Mapping[str, Sequence[Node]]
    about: str = ""


@dataclass(frozen=True, eq=False)
class Solver:
    """Closures that are solved by Newton steps: what the program around the steps has to know.

    Attributes:
        start: Positions of all tree joints at the start pose.
        newton: From measured positions `q` and a `pose` to the `next` pose, and the squared `size` of the
            step.
        measured: For each scalar measured position: its place in `q` and in `pose`, and its unit step.
        quaternions: First place of each measured quaternion in `q` and in `pose`.
        turning: Places in `q` and in `pose` of angles whose full turns do not change the pose.
        sets: Whether measured positions are inserted into the pose; else they are met in least squares.
    """

    start: tuple[float, ...]
    newton: Function
    measured: tuple[tuple[int, int, float], ...]
    quaternions: tuple[tuple[int, int], ...]
    turning: tuple[tuple[int, int], ...]
    sets: bool


class TreeCoordinates:
    """A tree: positions and rates follow from the measured ones and the couplings."""

    solver: Solver | None = None
    arrays: tuple[str, ...] = (Q,)

    def __init__(self, robot: Mechanism, graph: Graph) -> None:
        self.robot, self.graph, self.tree = robot, graph, tree_of(robot)
        self._map = coordinate_map(robot)

    @property
    def freedoms(self) -> tuple[str, ...]:
        """Independent velocity coordinates."""
        return self._map.independent

    @cached_property
    def q(self) -> Vector:
        """Positions of all joints; quaternions have unit length."""
        positions = list(self._given(Q))
        for _, part in self._quaternions:
            positions[part] = unit(tuple(positions[part]))
        return tuple(positions)

    @cached_property
    def bodies(self) -> Bodies:
        """Links at these positions."""
        return bodies_at(self.graph, self.tree, self.q)

    @cached_property
    def rates(self) -> tuple[Vector, Vector]:
        """Velocities and accelerations of all tree coordinates."""
        q, dq, ddq = (self._given(array) for array in (Q, DQ, DDQ))
        first, second = list(dq), list(ddq)
        for _, part in reversed(self._quaternions):
            _, first[part], second[part] = quaternion_rates(q[part], dq[part], ddq[part])
        return tuple(first), tuple(second)

    def along(self, efforts: Vector) -> Vector:
        """N^T w: efforts of all coordinates along the freedoms."""
        return apply(transposed(self._N), efforts)

    def direction(self, k: int) -> Vector:
        """Column k of N."""
        return tuple(row[k] for row in self._N)

    @cached_property
    def _N(self) -> Matrix:
        return tuple(constants(self.graph, row) for row in self._map.velocities)

    @cached_property
    def _quaternions(self) -> list[tuple[int, slice]]:
        """First position of each quaternion, and its part of the positions."""
        places = spherical_places(self.tree)
        return [(p, slice(p, p + 4)) for p, _ in places]

    def _given(self, array: str) -> Vector:
        """All positions, or their derivatives, as couplings give them."""
        leaves = tuple(self.graph.leaf(array, i) for i in range(self._map.positions.shape[1]))
        values = apply(tuple(constants(self.graph, row) for row in self._map.positions), leaves)
        return plus(values, constants(self.graph, self._map.offset)) if array == Q else values


class LoopCoordinates:
    """A closed robot: the other coordinates follow from the measured ones through the loops.

    Args:
        robot: The robot.
        graph: Of all nodes.
        explicit: Whether no position other than the measured ones is needed, as of a platform on cables
            whose pose is measured.
    """

    def __init__(self, robot: Mechanism, graph: Graph, explicit: bool) -> None:
        self.robot, self.graph, self.tree, self.explicit = robot, graph, tree_of(robot), explicit
        self.arrays = (Q,) if explicit else (POSE, Q)
        self._assembly = assembly_of(robot)
        self._sensors = sensors_of(robot, robot.measured_positions, _weights(robot))
        self._plan = plan_for(self._assembly, self._sensors)

    @property
    def freedoms(self) -> tuple[str, ...]:
        """Independent velocity coordinates."""
        return tuple(self.robot.coordinates[v] for v in self._plan.independent.tolist())

    @property
    def measured(self) -> set[int]:
        """Positions of the tree that are measured, if the pose is not a compromise between them."""
        sensors = self._sensors
        if sensors.count > self._assembly.dof:
            return set()
        quaternions = {p + k for p, _, _ in sensors.quaternions.tolist() for k in range(4)}
        return quaternions | set(sensors.position.tolist())

    @cached_property
    def q(self) -> Vector:
        """Positions of all joints; quaternions have unit length."""
        q = [self.graph.leaf(POSE, i) for i in range(self.tree.n_q)]
        if self.explicit:
            given = self._leaves(Q)
            for column, position in zip(self._sensors.column, self._sensors.position, strict=True):
                q[int(position)] = given[int(column)]
            for p, c, _ in self._sensors.quaternions.tolist():
                q[p : p + 4] = unit(given[c : c + 4])
        return tuple(q)

    @cached_property
    def bodies(self) -> Bodies:
        """Links at these positions."""
        return bodies_at(self.graph, self.tree, self.q)

    @cached_property
    def rates(self) -> tuple[Vector, Vector]:
        """Velocities and accelerations of all tree coordinates."""
        first, second = self._measured_rates()
        dq = self._nearest(first, None)
        return dq, self._nearest(second, self._solution.loops.bias(dq))

    def along(self, efforts: Vector) -> Vector:
        """N^T w: efforts of all coordinates along the freedoms."""
        return self._solution.along(efforts)

    def direction(self, k: int) -> Vector:
        """Column k of N."""
        given = [self.graph.constant(float(i == k)) for i in range(self._assembly.dof)]
        return self._solution.rates(tuple(given))

    @property
    def solver(self) -> Solver | None:
        """How the closures are solved; None where nothing has to be."""
        if self.explicit:
            return None
        units, sensors = self._assembly.units, self._sensors
        of_quaternion = {int(j) + k for _, _, j in sensors.quaternions.tolist() for k in range(3)}
        measured = [
            (int(sensors.column[j]), int(sensors.position[j]), float(units[sensors.velocity[j]]))
            for j in range(sensors.count)
            if j not in of_quaternion
        ]
        turning = [] if sensors.turning is None else sensors.turning.tolist()
        return Solver(
            tuple(self._assembly.start.tolist()),
            self._newton(),
            tuple(measured),
            tuple((c, p) for p, c, _ in sensors.quaternions.tolist()),
            tuple((c, p) for p, c in turning),
            sensors.count == self._assembly.dof,
        )

    @cached_property
    def _solution(self) -> Solution:
        loops = Loops(self._assembly.closure, self.bodies, self.q)
        return Solution(self._plan, loops, self.tree.n_v)

    def _leaves(self, array: str) -> Vector:
        return tuple(self.graph.leaf(array, i) for i in range(len(self.robot.measured_positions)))

    def _measured_rates(self) -> tuple[Vector, Vector]:
        """Velocities and accelerations of the measured coordinates."""
        q, dq, ddq = (self._leaves(array) for array in (Q, DQ, DDQ))
        first = [dq[int(c)] for c in self._sensors.column]
        second = [ddq[int(c)] for c in self._sensors.column]
        for _, c, j in self._sensors.quaternions.tolist():
            part = slice(c, c + 4)
            _, first[j : j + 3], second[j : j + 3] = quaternion_rates(q[part], dq[part], ddq[part])
        return tuple(first), tuple(second)

    def _nearest(self, given: Vector, bias: Vector | None) -> Vector:
        """Rates x with A x = -bias, nearest to those given at the measured coordinates."""
        sensors, solution = self._sensors, self._solution
        if sensors.count == self._assembly.dof:
            return solution.rates(given, bias)
        still = solution.rates(empty(self.graph, self._assembly.dof), bias)
        columns, R = self._sensed
        pairs = zip(sensors.velocity.tolist(), sensors.weight.tolist(), strict=True)
        miss = tuple((given[j] - still[v]) * weight for j, (v, weight) in enumerate(pairs))
        return solution.rates(back_substituted(R, apply(columns, miss)), bias)

    @cached_property
    def _sensed(self) -> tuple[Matrix, Matrix]:
        """Orthogonal triangle of the weighted measured rows of N."""
        rows = []
        for v, weight in zip(self._sensors.velocity.tolist(), self._sensors.weight.tolist(), strict=True):
            chosen = [self.graph.constant(weight if i == v else 0.0) for i in range(self.tree.n_v)]
            rows.append(self.along(tuple(chosen)))
        return orthogonal(tuple(rows))

    def _newton(self) -> Function:
        """One step of all positions towards closed loops and the measured positions."""
        q, f = self.q, self._solution.loops.f
        if self._sensors.count == self._assembly.dof:
            step = self._solution.rates(empty(self.graph, self._assembly.dof), f)
        else:
            step = self._nearest(self._miss(), f)
        moved = list(q)
        for p, v, kind in zip(self.tree.q_start, self.tree.v_start, self.tree.kind, strict=True):
            if kind in (REVOLUTE, PRISMATIC):
                moved[p] = q[p] + step[v]
        for p, v in spherical_places(self.tree):
            moved[p : p + 4] = turned(q[p : p + 4], step[v : v + 3])
        scaled = [x / step_unit for x, step_unit in zip(step, self._assembly.units.tolist(), strict=True)]
        return Function("newton", (POSE, Q), {"next": moved, "size": [dot(scaled, scaled)]})

    def _miss(self) -> Vector:
        """From the pose to the measured positions, in velocity coordinates."""
        wanted = self._leaves(Q)
        places = zip(self._sensors.column.tolist(), self._sensors.position.tolist(), strict=True)
        miss = [wanted[c] - self.q[p] for c, p in places]
        for p, c, j in self._sensors.quaternions.tolist():
            now, aim = self.q[p : p + 4], wanted[c : c + 4]
            _, turn, _ = quaternion_rates(now, aim, aim)
            miss[j : j + 3] = times(turn, self.graph.call("sign", dot(now, aim)))
        return tuple(miss)


Coordinates = TreeCoordinates | LoopCoordinates


def _weights(robot: Mechanism) -> list[float] | None:
    """Relative weight of each measured position, from the standard deviations in the description."""
    sigmas = [robot.measured_sigma.get(name) for name in robot.measured_positions]
    known = [sigma for sigma in sigmas if sigma is not None]
    if not known:
        return None
    typical = float(np.median(known))
    return [1.0 if sigma is None else typical / sigma for sigma in sigmas]
