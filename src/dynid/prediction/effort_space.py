"""Values with the efforts of a result: the space of all of them, and the physically consistent ones in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from dynid.base.base import BaseSet
from dynid.base.structural import structural_base
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.estimator.analytic_centre import Cone, nearest_inside
from dynid.estimator.consistent import nearest_consistent
from dynid.estimator.rigid_bodies import RigidBody, rigid_bodies
from dynid.estimator.semidefinite import SOLVED
from dynid.estimator.settings import Consistency
from dynid.estimator.standard_space import StandardSpace
from dynid.experiment.experiment import Experiment
from dynid.experiment.provenance import recorded_loads
from dynid.mechanism.inertia import SYMBOLS, is_physical, pseudo_inertia
from dynid.mechanism.mechanism import Body, Mechanism
from dynid.mechanism.parameters import Parameter, known_columns, parameter_table, prior_values
from dynid.prediction.mounted import always_carried
from dynid.prediction.result_values import StandardValues, standard_root, standard_values
from dynid.prediction.unloaded import Unloaded, unloaded_model
from dynid.projection.model import effort_model, model_named
from dynid.statistics.estimate import Estimate

_FAINT = 1e-2  # weight of drive parameters near the description, relative to that of a body
_PHYSICAL_RTOL = 1e-9  # the solver's own accuracy is 1e-8 of a scaled body, mostly far inside the cone
_FLOOR = 1e-6  # of a value: smallest standard deviation of a base parameter that a covariance may claim
_EDGE = 1e-9  # of a prior: thickness of a body that would be flat
_WIDER = (1.0, 10.0, 100.0, 1000.0)
_STRONGER = (0.1, *_WIDER)  # errors of neighbouring samples are alike, but bodies should not bend the efforts
REMEDY = (
    "identify again with `estimator: consistent`, or choose --not-physical nearest (changes the efforts"
    " a little) or mark (writes the values as they are)"
)


class EffortSpace:
    """The affine space of all standard parameters with the efforts of a result.

    With `unloaded`, the efforts are those of the robot with its payload and without it.
    """

    def __init__(self, estimate: Estimate, experiment: Experiment, mechanism: Mechanism) -> None:
        self.estimate, self.mechanism = estimate, mechanism
        self.parameters = parameter_table(mechanism)
        model = model_named(estimate.model)
        rows = None if mechanism.is_closed else model.directions(mechanism)
        self.values: StandardValues = standard_values(
            estimate, mechanism, self.parameters, experiment, model, rows, mechanism.payloads
        )
        given = experiment.unloaded is not None
        self.unloaded: Unloaded | None = unloaded_model(mechanism, experiment) if given else None
        self.always = (
            set() if given else always_carried(recorded_loads(estimate.provenance)) & set(mechanism.payloads)
        )
        self.loads = _loads(estimate, mechanism, bare=given)
        self.base: BaseSet = all_motions(mechanism, self.parameters, self.loads)
        self.free = self._undetermined()
        self.U = np.eye(len(self.parameters))[:, self.free]
        self.known = self._known()
        self.fixed = list(self.known)
        self.held = self._held() if given else []
        self.T = np.hstack([_unseen(self.base, len(self.parameters)), self.U])
        self.prior = prior_values(mechanism)

    def _undetermined(self) -> list[int]:
        """Columns of base parameters that the data did not determine; the description decides."""
        open_names = list(self.estimate.not_identifiable)
        if self.unloaded is not None:
            open_names += self.unloaded.estimate.not_identifiable
        names = {name.removesuffix("_R") for name in open_names}
        taken = np.any(self.values.M != 0, axis=1)
        return [i for i in self.base.indices if self.parameters[i].name in names and not taken[i]]

    def _known(self) -> dict[int, float]:
        """Column -> value that the description takes as exact; values of a result are not."""
        described = self.mechanism if self.unloaded is None else self.unloaded.described
        return known_columns(described, self.parameters)

    def _held(self) -> list[int]:
        """Columns of payloads that are real bodies as found: they do not depend on how the robot's sums are
        divided among its bodies."""
        index = {parameter.name: i for i, parameter in enumerate(self.parameters)}
        tens = [[index[f"{symbol}_{load}"] for symbol in SYMBOLS] for load in self.mechanism.payloads]
        return [i for ten in tens if is_physical(self.values.chi[ten], _PHYSICAL_RTOL) for i in ten]

    @property
    def kept(self) -> list[int]:
        """Columns that no choice of bodies may change."""
        return sorted({*self.fixed, *self.held})

    @property
    def shown_by_logs(self) -> bool:
        """Whether efforts along the logs of the result show every change of its values.

        Loaded logs alone do not show a change of the payload that its carrier compensates.
        """
        return self.unloaded is None or all(
            i in self.held for i, p in enumerate(self.parameters) if p.owner in self.mechanism.payloads
        )

    @cached_property
    def root(self) -> Float[Array, "p r"]:
        """A root of the covariance of the standard parameters, SI; of a payload by difference, with that of
        the robot."""
        if self.unloaded is None:
            return standard_root(self.estimate, self.values)
        return self.unloaded.loaded_root(self.estimate, self.values, self.parameters)

    @cached_property
    def bodies(self) -> tuple[RigidBody, ...]:
        """Bodies with a prior each: that of the description, or a generic one."""
        masses = {
            p.owner: abs(value)
            for p, value in zip(self.parameters, self.values.chi.tolist(), strict=True)
            if p.symbol == "M" and p.kind == "inertial" and value != 0.0
        }
        scale = float(np.median(list(masses.values()))) if masses else 1.0
        made = rigid_bodies(self.mechanism, self.parameters, {}, scale)
        return tuple(replace(body, prior=body.ball) if body.prior is None else body for body in made)


def _loads(estimate: Estimate, mechanism: Mechanism, *, bare: bool) -> list[tuple[str, ...]]:
    """Payloads of every motion that the result knows the efforts of; each payload in one at least.

    Args:
        bare: The robot is also known without any.
    """
    recorded = recorded_loads(estimate.provenance)
    shown = [tuple(name for name in mechanism.payloads if name in load) for load in recorded]
    shown = [(), *shown] if bare or not shown else shown
    others = [name for name in mechanism.payloads if not any(name in load for load in shown)]
    return list(dict.fromkeys([*shown, (*shown[0], *others)]))


def all_motions(
    mechanism: Mechanism, parameters: Sequence[Parameter], loads: Sequence[tuple[str, ...]] = ((),)
) -> BaseSet:
    """What all motions show, known values and ties aside.

    Args:
        loads: Payloads that are mounted together.
    """

    def bare(owner: Body) -> Body:
        return replace(owner, known={})

    stripped = replace(
        mechanism,
        known={},
        bodies={name: bare(body) for name, body in mechanism.bodies.items()},
        payloads={name: replace(payload, known={}) for name, payload in mechanism.payloads.items()},
        rebuild=None,
    )
    model = effort_model()
    rows = None if mechanism.is_closed else model.directions(stripped)
    return structural_base(stripped, model, parameters, rows, loads=tuple(loads))


def _unseen(base: BaseSet, p: int) -> Float[Array, "p n"]:
    """N with G N = 0: each grouped column against the base columns that contain it, and eliminated ones."""
    others = [i for i in range(p) if i not in base.indices]
    N = np.zeros((p, len(others)))
    N[others, np.arange(len(others))] = 1.0
    N[list(base.indices)] = -base.G[:, others]
    return N


def consistent_set(space: EffortSpace) -> tuple[Float[Array, "p"] | None, str]:
    """Physically consistent values with unchanged efforts, near the description; or why there are none."""
    variables = _variables(space)
    if variables.n == 0:  # every parameter is a base parameter
        return space.values.chi, ""
    drives, R, r = _drives(space, variables)
    bodies = [Cone(body.variables, body.F, body.g, P0) for body, P0 in _free_bodies(variables)]
    x = nearest_inside([*bodies, *drives], R, r, variables.n)
    chi = variables.chi(x)
    # Bodies at the very edge have no point inside: what is physical but for rounding serves as well.
    if np.all(np.isfinite(chi)) and not faults(space, chi):
        return chi, ""
    return None, "no masses, centres of mass and inertias of real bodies add up to them"


def _free_bodies(variables: StandardSpace) -> Iterator[tuple[RigidBody, Float[Array, "4 4"]]]:
    """Bodies with all ten parameters that y can change, and their scaled priors."""
    for body in variables.every.values():
        if body.is_free and body.P0 is not None and len(body.faces) == len(body.P0) == 4:
            yield body, body.P0


def _variables(space: EffortSpace) -> StandardSpace:
    """Scaled coordinates y of the space, and the bodies as functions of them; without data.

    y changes no known value.
    """
    none = np.zeros((0, 0)), np.zeros((0, len(space.parameters))), np.zeros(0)
    T = space.T @ _unchanged(space.T[space.kept])
    return StandardSpace(space.parameters, T, space.values.chi, space.bodies, *none)


def _unchanged(E: Float[Array, "e n"]) -> Float[Array, "n m"]:
    """A basis of all y with E y = 0; unit vectors where E is zero."""
    touched = np.any(E != 0, axis=0)
    kept = _null_space(E[:, touched]) if touched.any() else np.zeros((0, 0))
    alone = np.flatnonzero(~touched)
    Z = np.zeros((len(touched), len(alone) + kept.shape[1]))
    Z[alone, np.arange(len(alone))] = 1.0
    Z[np.ix_(touched, np.arange(len(alone), Z.shape[1]))] = kept
    return Z


def _null_space(E: Float[Array, "e n"]) -> Float[Array, "n m"]:
    """An orthonormal basis of all y with E y = 0."""
    _, size, directions = np.linalg.svd(E)
    rank = int(np.sum(size > np.finfo(float).eps * max(E.shape) * size.max(initial=0.0)))
    return np.asarray(directions[rank:].T)


def _drives(
    space: EffortSpace, variables: StandardSpace
) -> tuple[list[Cone], Float[Array, "r n"], Float[Array, "r"]]:
    """Drive parameters that y moves: what may not be negative, and a faint square |R y + r|^2 near the
    description. Friction brakes at every speed."""
    everything = np.arange(variables.n)
    rows = [i for i, p in enumerate(space.parameters) if p.kind != "inertial" and np.any(variables.T[i] != 0)]
    F = np.zeros((len(rows), variables.n))
    F[:, : variables.n_x] = variables.T[rows] * variables.scale
    size = np.abs(F).max(axis=1, initial=0.0)
    start = space.values.chi[rows] / size
    F = F / size[:, None]
    signed = [k for k, i in enumerate(rows) if space.parameters[i].positive]
    braking, right = variables.braking
    positive = np.vstack([F[signed], braking]), np.concatenate([start[signed], right])
    one = np.ones((1, 1))
    cones = [
        Cone(everything[used], row[used].reshape(-1, 1, 1), value * one, one, _FAINT**2, 0.0)
        for row, value in zip(*positive, strict=True)
        if (used := row != 0.0).any()
    ]
    wanted = np.array([space.prior.get(space.parameters[i].name, 0.0) for i in rows])
    return cones, _FAINT * F, _FAINT * (start - wanted / size)


def written_as_found(space: EffortSpace) -> Float[Array, "p"]:
    """Values with unchanged efforts that are nearest to the description, physical or not."""
    unit = np.ones(len(space.parameters))
    wanted = np.array([space.prior.get(p.name, 0.0) for p in space.parameters])
    for body in space.bodies:
        for k, i in enumerate(body.columns):
            if i >= 0:
                unit[i] = body.unit[k]
                wanted[i] = body.ball[k] if body.prior is None else body.prior[k]
    free = np.flatnonzero(~np.any(space.T[space.kept] != 0, axis=0)) if space.kept else slice(None)
    T = space.T[:, free] / unit[:, None]
    size = np.maximum(np.linalg.norm(T, axis=0), np.finfo(float).tiny)
    y = np.linalg.lstsq(T / size, (wanted - space.values.chi) / unit, rcond=None)[0] / size
    return np.asarray(space.values.chi + space.T[:, free] @ y)


def nearest_set(space: EffortSpace) -> tuple[Float[Array, "p"], float]:
    """The consistent set that is nearest in the metric of the covariance, and its distance in deviations."""
    kept = [k for k, i in enumerate(space.base.indices) if i not in space.free]
    G = space.base.G[kept]
    target = G @ space.values.chi
    root = G @ space.root
    sizes = np.maximum(np.abs(target), np.abs(G) @ np.abs(space.values.chi))
    floor = _FLOOR * np.where(sizes > 0, sizes, float(sizes.max(initial=1.0)))
    U = np.linalg.qr(np.hstack([root, np.diag(floor)]).T, mode="r")
    solved = _nearest(space, np.asarray(np.linalg.inv(U).T), G, target, _WIDER)
    if isinstance(solved, str):
        raise InputError(f"no physically consistent robot was found: {solved}", remedy=REMEDY)
    return solved


def nearest_by_efforts(
    space: EffortSpace, rows: Float[Array, "r p"], other: Float[Array, "p"]
) -> tuple[Float[Array, "p"], float]:
    """The consistent set whose efforts along the logs are nearest to those of the estimate, and the rms of
    this change in deviations of the errors.

    The covariance of an estimate is found from a few blocks of time, and has fewer directions than there are
    parameters: far from the estimate it does not show which changes move the efforts. The rows do.

    Args:
        rows: Of the logs, in deviations of their errors (`rows_in_deviations`).
        other: A consistent set, which is kept if its efforts are nearer.
    """
    kept = [k for k, i in enumerate(space.base.indices) if i not in space.free]
    G, target = space.base.G[kept], space.base.G[kept] @ space.values.chi
    R = np.linalg.qr(rows[:, [space.base.indices[k] for k in kept]], mode="r")
    U = np.zeros((len(kept), len(kept)))
    U[: len(R)] = R
    solved = _nearest(space, U, G, target, _STRONGER)
    sets = [other] if isinstance(solved, str) else [solved[0], other]
    changes = [float(np.linalg.norm(U @ (G @ values - target))) / np.sqrt(len(rows)) for values in sets]
    return sets[int(np.argmin(changes))], min(changes)


def _nearest(
    space: EffortSpace,
    U: Float[Array, "v v"],
    G: Float[Array, "v p"],
    target: Float[Array, "v"],
    wider: Sequence[float],
) -> tuple[Float[Array, "p"], float] | str:
    """The consistent set that minimises |U (G chi - target)|, and this distance; or why there is none."""
    p = len(space.parameters)
    free = [i for i in range(p) if i not in space.kept]
    c = np.zeros(p)
    c[space.kept] = space.values.chi[space.kept]
    every = StandardSpace(space.parameters, np.eye(p)[:, free], c, space.bodies, U, G, target)
    for factor in wider:  # a set that is very far away is found with weaker data only
        solved = nearest_consistent(replace(every, U=U / factor), Consistency())
        if solved.status == SOLVED:
            return _inside(space, solved.chi), solved.distance * factor
    return solved.reason


def _inside(space: EffortSpace, chi: Float[Array, "p"]) -> Float[Array, "p"]:
    """The same with bodies at the edge moved inside by as little of their prior as rounding needs."""
    chi = chi.copy()
    for body in space.bodies:
        columns = list(body.columns)
        if min(columns) < 0 or body.prior is None or is_physical(chi[columns], 0.0):
            continue
        root = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(body.prior)))
        lowest = float(np.linalg.eigvalsh(root @ pseudo_inertia(chi[columns]) @ root.T)[0])
        chi[columns] += (abs(lowest) + _EDGE) * body.prior
    return chi


def faults(space: EffortSpace, chi: Float[Array, "p"]) -> list[str]:
    """Bodies that are not physically consistent, and drives with a negative parameter."""
    return [*_impossible(space, chi), *negative_values(space, chi)]


def _impossible(space: EffortSpace, chi: Float[Array, "p"]) -> list[str]:
    wrong = []
    for body in space.bodies:
        if min(body.columns) >= 0 and not is_physical(chi[list(body.columns)], _PHYSICAL_RTOL):
            wrong.append(f"'{body.name}' is no real body")
    return wrong


def negative_values(space: EffortSpace, chi: Float[Array, "p"], *, fixed: bool = False) -> list[str]:
    """Drive parameters below zero; `fixed`: only those that are base parameters by themselves."""
    wrong = []
    G = np.abs(space.base.G)
    whole = np.abs(space.base.G @ chi)
    for i, (p, value, row) in enumerate(zip(space.parameters, chi.tolist(), space.T, strict=True)):
        # Rounding of the base parameters that contain it: a robot of any size has the same.
        small = _PHYSICAL_RTOL * float((whole * G[:, i]).max(initial=0.0))
        if fixed and np.any(row != 0.0):
            continue
        if p.positive and value < -small:
            unit = "" if p.unit == "1" else f" {p.unit}"
            wrong.append(f"{p.name} = {value:.4g}{unit} is negative")
    return wrong


def with_free_values(space: EffortSpace, chi: Float[Array, "p"]) -> Float[Array, "p"]:
    """Values at the names of the base parameters; undetermined ones are those of the full set."""
    reference = space.values.chi.copy()
    place = {i: k for k, i in enumerate(space.base.indices)}
    reference[space.free] = [float(space.base.G[place[i]] @ chi) for i in space.free]
    return reference
