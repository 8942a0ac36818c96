"""Controller model: an estimate as functions of the measured coordinates, each a list of expressions.

    tau = (J^T)^+ N^T W(q, dq, ddq) chi + (1 - J J^+) internal

N are the freedoms of the robot and J its motors along them. Every function is straight-line: only the
solution of the closures (`newton`) is repeated by the program around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dynid.exporters.code.bodies import (
    Entry,
    Motion,
    Ten,
    Value,
    drive_entries,
    momentum,
    power,
    term_entries,
    unit_wrenches,
)
from dynid.exporters.code.coordinates import (
    DDQ,
    DQ,
    POSE,
    Coordinates,
    Function,
    LoopCoordinates,
    Solver,
    TreeCoordinates,
)
from dynid.exporters.code.graph import (
    Graph,
    Matrix,
    Node,
    Vector,
    apply,
    back_substituted,
    constants,
    forward_substituted,
    minus,
    orthogonal,
    plus,
    reached,
    times,
    transposed,
)
from dynid.exporters.code.loops import empty
from dynid.kinematics.tree import Tree
from dynid.mechanism.drive_terms import LOADED
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import load_map, owners_of, parameter_table
from dynid.projection.load import loading

INTERNAL, PARAMETER = "internal", "parameter"


def controller_model(robot: Mechanism, values: tuple[Value, ...]) -> ControllerModel:
    """The functions of an estimate.

    Args:
        robot: With the payloads that are mounted.
        values: Parameters that are kept, in the order of the regressor's columns.
    """
    graph = Graph()
    if not robot.is_closed:
        return ControllerModel(robot, values, TreeCoordinates(robot, graph), graph)
    coordinates = LoopCoordinates(robot, graph, explicit=False)
    model = ControllerModel(robot, values, coordinates, graph)
    needed = {node.place[1] for node in reached(model.needed) if node.place[0] == POSE}
    if needed <= coordinates.measured:
        return ControllerModel(robot, values, LoopCoordinates(robot, graph, explicit=True), graph)
    return model


@dataclass(frozen=True, eq=False)
class ControllerModel:
    """Efforts, mass matrix and regressor as expressions.

    Attributes:
        robot: With the payloads that are mounted.
        values: Parameters that are kept, in the order of the regressor's columns.
        coordinates: All coordinates from the measured ones.
        graph: Of all nodes.
    """

    robot: Mechanism
    values: tuple[Value, ...]
    coordinates: Coordinates
    graph: Graph

    @property
    def names(self) -> tuple[str, ...]:
        """Measured positions."""
        return self.robot.measured_positions

    @property
    def freedoms(self) -> tuple[str, ...]:
        """Velocity coordinates of the mass matrix."""
        return self.coordinates.freedoms

    @property
    def tree(self) -> Tree:
        """Links of the robot."""
        return self.coordinates.tree

    @property
    def redundant(self) -> bool:
        """Whether there are more actuators than freedoms."""
        return len(self.robot.actuators) > len(self.freedoms)

    @property
    def needed(self) -> list[Node]:
        """Outputs that between them use every position that matters."""
        return [*self._inverse(), *self._mass_matrix()]

    @property
    def solver(self) -> Solver | None:
        """How the closures are solved; None where nothing has to be."""
        return self.coordinates.solver

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Inverse dynamics, gravity, friction, mass matrix and regressor."""
        first = self.coordinates.arrays
        moving = (*first, DQ, DDQ)
        tension = (*moving, INTERNAL) if self.redundant else moving
        return (
            Function("inverse_dynamics", tension, {"tau": self._inverse()}, "efforts of the actuators"),
            Function("gravity", first, {"tau": self._gravity()}, "efforts at rest, without friction"),
            Function("friction", moving, {"tau": self._friction()}, "friction and offsets alone"),
            Function("mass_matrix", first, {"M": self._mass_matrix()}, "inertia along the freedoms"),
            Function("regressor", moving, {"Y": self._regressor()}, "efforts per unit of each parameter"),
        )

    # Parameters.

    @cached_property
    def _symbols(self) -> dict[str, Node]:
        """Standard name -> sum of the parameters that give its value."""
        sums: dict[str, Node] = {}
        for k, value in enumerate(self.values):
            for name in value.standard:
                sums[name] = sums.get(name, self.graph.constant(0.0)) + self.graph.leaf(PARAMETER, k)
        return sums

    @cached_property
    def _ten(self) -> dict[str, Ten]:
        """Body -> its parameters."""
        return {
            name: {s: self._symbols[f"{s}_{name}"] for s in SYMBOLS if f"{s}_{name}" in self._symbols}
            for name in self.tree.body_names
        }

    @cached_property
    def _loading(self) -> set[str]:
        """Parameters that load joints, not friction or offsets."""
        table = parameter_table(self.robot)
        chosen = loading(self.robot, table).tolist()
        return {parameter.name for parameter, picked in zip(table, chosen, strict=True) if picked}

    # Efforts.

    def _entries(self, dq: Vector, ddq: Vector) -> list[Entry]:
        """Entries of drive terms and declared terms whose parameters are kept."""
        q = self.coordinates.q
        entries = [
            *drive_entries(self.robot, self.graph, dq, ddq),
            *term_entries(self.robot, self.graph, q, dq, ddq),
        ]
        return [entry for entry in entries if entry.parameter in self._symbols]

    def _loads(self, dq: Vector, ddq: Vector, motions: Sequence[Motion]) -> Vector:
        """Efforts of all tree coordinates without friction and offsets."""
        rows = list(self.coordinates.bodies.efforts(motions, self._ten))
        for entry in self._entries(dq, ddq):
            if entry.parameter in self._loading:
                rows[entry.row] = rows[entry.row] + self._symbols[entry.parameter] * entry.column
        return tuple(rows)

    def _losses(self, dq: Vector, ddq: Vector, load: Vector) -> Vector:
        """Friction and offsets of all tree coordinates; `load`: sizes of loads of all sources, if needed."""
        rows = list(empty(self.graph, self.tree.n_v))
        for entry in self._entries(dq, ddq):
            if entry.parameter not in self._loading:
                column = entry.column * load[entry.source] if entry.source >= 0 else entry.column
                rows[entry.row] = rows[entry.row] + self._symbols[entry.parameter] * column
        return tuple(rows)

    @cached_property
    def _motors(self) -> tuple[Matrix, Matrix]:
        """Orthogonal triangle of J = C N: columns of Q, and R."""
        C = [constants(self.graph, row) for row in self.robot.actuator_map]
        return orthogonal(tuple(self.coordinates.along(row) for row in C))

    def _least(self, rows: Vector) -> Vector:
        """Least efforts of the actuators for efforts of all tree coordinates."""
        columns, R = self._motors
        return apply(transposed(columns), forward_substituted(R, self.coordinates.along(rows)))

    @cached_property
    def _strain(self) -> Vector:
        """The part of the internal efforts that moves nothing."""
        if not self.redundant:
            return empty(self.graph, len(self.robot.actuators))
        columns, _ = self._motors
        wanted = tuple(self.graph.leaf(INTERNAL, i) for i in range(len(self.robot.actuators)))
        return minus(wanted, apply(transposed(columns), apply(columns, wanted)))

    def _source_loads(self, loads: Vector, strain: Vector | None) -> Vector:
        """Sizes of the loads of all coordinates, then of all actuators."""
        if not owners_of(self.robot, *LOADED):
            return ()
        tau = self._least(loads)
        tau = tau if strain is None else plus(tau, strain)
        E = tuple(constants(self.graph, row) for row in load_map(self.robot))
        return tuple(self.graph.call("abs", load) for load in apply(E, tau))

    def _inverse(self) -> Vector:
        dq, ddq = self.coordinates.rates
        loads = self._loads(dq, ddq, self.coordinates.bodies.motions(dq, ddq))
        strain = self._strain if self.redundant else None
        losses = self._losses(dq, ddq, self._source_loads(loads, strain))
        tau = self._least(plus(loads, losses))
        return tau if strain is None else plus(tau, strain)

    def _gravity(self) -> Vector:
        still = empty(self.graph, self.tree.n_v)
        return self._least(self._loads(still, still, self.coordinates.bodies.motions(still, still)))

    def _friction(self) -> Vector:
        dq, ddq = self.coordinates.rates
        loads: Vector = ()
        if owners_of(self.robot, *LOADED):
            loads = self._source_loads(self._loads(dq, ddq, self.coordinates.bodies.motions(dq, ddq)), None)
        return self._least(self._losses(dq, ddq, loads))

    def _mass_matrix(self) -> Vector:
        """N^T M N, row by row: bodies and rotors; declared terms are left out."""
        d, directions = len(self.freedoms), self._directions
        twists = [self.coordinates.bodies.twists(direction) for direction in directions]
        still = empty(self.graph, self.tree.n_v)
        M = [[self.graph.constant(0.0)] * d for _ in range(d)]
        for k in range(d):
            rotors = [
                entry for entry in self._entries(still, directions[k]) if entry.parameter.startswith("Ia_")
            ]
            moments = [
                momentum(self._ten[name], self.graph, *twists[k][b])
                for b, name in enumerate(self.tree.body_names)
            ]
            for j in range(k, d):
                parts = [power(twists[j][b], *moments[b]) for b in range(len(moments))]
                parts += [directions[j][e.row] * self._symbols[e.parameter] * e.column for e in rotors]
                M[k][j] = M[j][k] = self.graph.sum(parts)
        return tuple(element for row in M for element in row)

    @cached_property
    def _directions(self) -> list[Vector]:
        """Columns of N."""
        return [self.coordinates.direction(k) for k in range(len(self.freedoms))]

    @cached_property
    def _columns(self) -> list[Vector]:
        """Velocities of all coordinates whose power with W chi is the effort of each actuator."""
        columns, R = self._motors
        directions = self._directions
        velocities = []
        for a in range(len(self.robot.actuators)):
            share = back_substituted(R, tuple(column[a] for column in columns))
            velocities.append(
                plus(*(times(direction, x) for direction, x in zip(directions, share, strict=True)))
            )
        return velocities

    def _regressor(self) -> Vector:
        """Row by row: efforts of each actuator per unit of each parameter."""
        dq, ddq = self.coordinates.rates
        bodies = self.coordinates.bodies
        motions = bodies.motions(dq, ddq)
        loads: Vector = ()
        if owners_of(self.robot, *LOADED):
            loads = self._source_loads(self._loads(dq, ddq, motions), None)
        entries = self._entries(dq, ddq)
        units = [
            unit_wrenches(bodies.body_motion(b, motions[int(link)])) if link >= 0 else {}
            for b, link in enumerate(self.tree.body_link)
        ]
        elements: list[Node] = []
        for direction in self._columns:
            twists = bodies.twists(direction)
            standard: dict[str, Node] = {}
            for b, name in enumerate(self.tree.body_names):
                for symbol in self._ten[name]:
                    standard[f"{symbol}_{name}"] = power(twists[b], *units[b][symbol])
            for e in entries:
                column = e.column * loads[e.source] if e.source >= 0 else e.column
                before = standard.get(e.parameter, self.graph.constant(0.0))
                standard[e.parameter] = before + direction[e.row] * column
            zero = self.graph.constant(0.0)
            elements += [
                self.graph.sum(standard.get(n, zero) for n in value.standard) for value in self.values
            ]
        return tuple(elements)
