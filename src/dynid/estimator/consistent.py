"""The physically consistent estimate: consistent bodies, dissipative friction, positive rotor inertia.

minimise over chi   1/2 |U (G chi - chi_hat)|^2  +  sum_b D(P_b, P0_b) / spread^2
so that             P_b >= margin,   Ia, Fv, Fs, Fr, Fl, Fs + Fk >= 0,   masses and centres of mass in bounds

chi_hat is the linear estimate of the base parameters, U^T U the inverse of its covariance (the
triangle of the weighted rows, in units of their standard deviation), G the grouping. The rows
themselves are not needed. Entropic distance [Lee, Wensing, Park 2020]:
D(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4.

How much of each standard parameter comes from the data, and which parameters are at a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.errors import InputError, nearest
from dynid.estimator.rigid_bodies import WHOLE, RigidBody
from dynid.estimator.semidefinite import INFEASIBLE, SOLVED, UNBOUNDED, Program, packed
from dynid.estimator.settings import TOTAL, Consistency
from dynid.estimator.standard_space import StandardSpace
from dynid.projection.factor import triangle

# Keeps rounding from leaving the cone: a ten-millionth of the body's mass and size.
_SMALLEST_EIGENVALUE = 1e-7
# Bounds bodies without a prior of their size, in units of the assumed mass and length.
_LARGEST_UNSEEN = 1e4
_UNSEEN = 1e-12  # of the largest singular value: below this the data give no information
_FAINT = 1e-2  # of the pull of one deviation, at the size of the parameter
_HARDLY = 100.0  # a spread so large that the prior has almost no effect
_TRULY_UNBOUNDED = 1e-6  # growth per unit size that is no rounding


@dataclass(frozen=True, eq=False)
class Consistent:
    """The consistent set, or why there is none.

    Attributes:
        chi: Standard parameters, shape (p,), SI.
        status: `solved`, `infeasible`, `unbounded` or `not converged`.
        reason: In words, where it is not solved.
        at_bound: Parameters at zero, their smallest value, where the data put them: not those that only
            act in sums with others, of which the prior chose.
        at_edge: Bodies at the limit of physical consistency (flat or without mass, relative to the prior).
        distance: Deviations between the set's base parameters and the linear estimate.
        share: Part of each parameter's certainty that the data brought, shape (p,).
    """

    chi: Float[Array, "p"]
    status: str
    reason: str
    iterations: int
    at_bound: tuple[str, ...]
    at_edge: tuple[str, ...]
    distance: float
    share: Float[Array, "p"]


def nearest_consistent(space: StandardSpace, options: Consistency) -> Consistent:
    """The consistent standard parameters that explain the data best, near the prior elsewhere."""
    growing = _growing(space, options)
    if growing:
        text = "bodies can grow without limit and without effect on the efforts: " + ", ".join(growing)
        return _outcome(space, options, None, UNBOUNDED, text)
    optimum = consistent_program(space, options).solve()
    return _outcome(space, options, optimum, optimum.status, _why(optimum))


def consistent_exists(space: StandardSpace, options: Consistency) -> bool:
    """Whether `nearest_consistent` finds a set."""
    return not _growing(space, options) and consistent_program(space, options).solve().status == SOLVED


def _growing(space: StandardSpace, options: Consistency) -> list[str]:
    """Bodies that can grow without limit; none if a prior or a largest mass bounds them."""
    _check_names(space, options)
    sized = options.mass or any(body.prior is not None for body in space.bodies)
    return [] if sized else unbounded_bodies(space)


def physical_distance(space: StandardSpace) -> float | None:
    """Distance in sigma from the linear estimate to the closest consistent set, almost without prior.

    The weak prior only bounds parameters that the data do not determine. None if the solver finds no
    solution.
    """
    bodies = tuple(replace(body, prior=body.ball) if body.prior is None else body for body in space.bodies)
    space = replace(space, bodies=bodies)
    weak = Consistency(prior="euclidean", spread=_HARDLY)
    optimum = consistent_program(space, weak).solve()
    return space.distance(space.chi(optimum.x)) if optimum.status == SOLVED else None


def consistent_program(space: StandardSpace, options: Consistency) -> Program:
    """The whole problem."""
    program = Program(space.n)
    _data(program, space)
    _signs(program, space)
    _equalities(program, space)
    _bounds(program, space, options)
    _friction(program, space)
    for body in space.distinct:
        _body(program, body, options)
    if options.prior == "euclidean":
        _euclidean(program, space, options)
    return program


def unbounded_bodies(space: StandardSpace) -> list[str]:
    """Bodies that can grow along some direction that no row sees.

    A direction x with A x = 0 along which every body stays one: what grows is bounded to one,
    and the largest growth is zero or not.
    """
    program = Program(space.n)
    size = np.maximum(np.linalg.norm(space.A, axis=1, keepdims=True), np.finfo(float).tiny)
    program.require("zero", np.arange(space.n_x), space.A / size, np.zeros(len(size)))
    _signs(program, space)
    _equalities(program, space, homogeneous=True)
    growth = np.zeros(space.n)
    for body in (candidate for candidate in space.distinct if candidate.is_free):
        program.semidefinite(body.variables, body.F, np.zeros_like(body.g))
        np.add.at(growth, body.variables, np.trace(body.F, axis1=1, axis2=2))
        # Entries that a body does not have are nobody's growth.
        lacking = body.variables[body.variables >= space.n_x]
        program.require("zero", lacking, np.eye(len(lacking)), np.zeros(len(lacking)))
    everything = np.arange(space.n)
    program.require("nonnegative", everything, -growth[None, :], np.ones(1))
    program.minimise(everything, -growth)
    optimum = program.solve()
    if optimum.status == SOLVED and -optimum.objective < _TRULY_UNBOUNDED:
        return []
    sizes = {
        candidate.name: float(np.trace(candidate.value(optimum.x) - candidate.g))
        for candidate in space.distinct
    }
    largest = max(sizes.values(), default=0.0)
    return [name for name, size in sizes.items() if size > 0.01 * largest]


def _outcome(
    space: StandardSpace, options: Consistency, program: Program | None, status: str, reason: str
) -> Consistent:
    """What the solver found, as parameters of the robot."""
    share = data_share(space, options)
    if program is None or status != SOLVED:
        iterations = 0 if program is None else program.iterations
        return Consistent(np.zeros(len(share)), status, reason, iterations, (), (), np.inf, share)
    x = program.x.copy()
    x[space.signed] = np.maximum(x[space.signed], 0.0)
    x[space.unfelt] = 0.0
    bound = at_bound(space, x)
    x[bound] = 0.0  # rounding of the solver, far below a deviation
    chi = space.chi(x)
    return Consistent(
        chi=chi,
        status=status,
        reason=reason,
        iterations=program.iterations,
        at_bound=tuple(space.name(int(k)) for k in bound[determined_alone(space)[bound]]),
        at_edge=at_edge(space, x),
        distance=space.distance(chi),
        share=share,
    )


def _why(program: Program) -> str:
    if program.status == SOLVED:
        return ""
    if program.status == INFEASIBLE:
        return "no physically consistent bodies have the given known values, ties and bounds"
    return f"the solver stopped with {program.reason} after {program.iterations} iterations"


def _check_names(space: StandardSpace, options: Consistency) -> None:
    names = [body.name for body in space.bodies]
    for setting, given in (("mass", options.mass), ("com", options.com)):
        for name in given:
            if name not in names and (setting, name) != ("mass", TOTAL):
                raise InputError(
                    f"{setting}: no body or payload '{name}' has inertial parameters" + nearest(name, names),
                    remedy="name a body, a mounted payload" + (", or total" if setting == "mass" else ""),
                )


def _data(program: Program, space: StandardSpace) -> None:
    """1/2 |A x - b|^2 = 1/2 |d|^2 with V^T x - d / s = Q^T b / s, where A = Q s V^T.

    Rows of V^T are orthonormal, so accurate data (large s) and weak data do not disturb each other.
    Friction, offsets and terms have no prior: a very weak pull sets them to zero if no row determines them.
    """
    Q, s, Vt = np.linalg.svd(space.A, full_matrices=False)
    seen = s > _UNSEEN * s.max(initial=0.0)
    Q, s, Vt = Q[:, seen], s[seen], Vt[seen]
    d = program.variables(len(s))
    columns = np.concatenate([np.arange(space.n_x), d])
    program.require("zero", columns, np.hstack([Vt, -np.diag(1.0 / s)]), -(Q.T @ space.b) / s)
    program.minimise_norm(d, np.eye(len(s)), np.zeros(len(s)))
    rest = space.bodiless
    program.minimise_norm(rest, _FAINT * np.eye(len(rest)), np.zeros(len(rest)))


def _signs(program: Program, space: StandardSpace) -> None:
    signed = space.signed
    program.require("nonnegative", signed, np.eye(len(signed)), np.zeros(len(signed)))


def _equalities(program: Program, space: StandardSpace, *, homogeneous: bool = False) -> None:
    """Ties after regrouping; where a diagonal entry of P is zero, its row and column are zero too."""
    if space.E is not None and len(space.E):
        rows = space.E @ space.T * space.scale
        size = np.maximum(np.linalg.norm(rows, axis=1), np.finfo(float).tiny)
        right = space.E @ space.c / size * (0.0 if homogeneous else 1.0)
        program.require("zero", np.arange(space.n_x), rows / size[:, None], right)
    for body in space.distinct:
        whole = replace(body, faces=WHOLE)
        pairs = [(i, j) for i in range(4) if i not in body.faces for j in range(4) if i != j]
        F = np.array([whole.F[:, i, j] for i, j in pairs]).reshape(len(pairs), len(body.variables))
        g = np.array([whole.g[i, j] for i, j in pairs]) * (0.0 if homogeneous else 1.0)
        real = np.any(F != 0, axis=1) | (g != 0)
        program.require("zero", body.variables, F[real], g[real])


def _friction(program: Program, space: StandardSpace) -> None:
    """Friction brakes at every speed, also where a term of it is negative."""
    rows, right = space.braking
    if len(rows):
        program.require("nonnegative", np.arange(space.n), rows, right)


def _bounds(program: Program, space: StandardSpace, options: Consistency) -> None:
    """Largest masses, of bodies and in all; ellipsoids of centres of mass."""
    total, known = np.zeros(space.n), 0.0
    for name, body in space.every.items():
        m0 = body.mass
        if not body.payload:
            np.add.at(total, body.variables, m0 * body.u[9])
            known += m0 * body.u0[9]
        if name in options.mass:
            right = np.array([options.mass[name] / m0 - body.u0[9]])
            program.require("nonnegative", body.variables, -body.u[9:10], right)
        if name in options.com:
            _ellipsoid(program, body, options)
    if TOTAL in options.mass:
        cap = options.mass[TOTAL]
        right = np.array([1.0 - known / cap])
        program.require("nonnegative", np.arange(space.n), -total[None] / cap, right)


def _ellipsoid(program: Program, body: RigidBody, options: Consistency) -> None:
    """|(h - m centre) / radii| <= m."""
    where, L = options.com[body.name], body.length
    R = np.zeros((4, 10))
    R[0, 9] = 1.0
    R[1:, 6:9] = np.diag(L / np.array(where.radii))
    R[1:, 9] = -np.array(where.centre) / np.array(where.radii)
    program.require("norm", body.variables, R @ body.u, R @ body.u0)


def _body(program: Program, body: RigidBody, options: Consistency) -> None:
    """P' is positive semidefinite, and near the prior by the entropic distance."""
    if not body.faces:
        return
    columns, F, g, P0 = body.variables, body.F, body.g, body.P0
    entropic = options.prior == "entropic" and P0 is not None and body.is_free
    if entropic and P0 is not None:
        weight = pull(body, options)
        logs = program.log_det(columns, F, g)
        program.minimise(columns, weight * np.einsum("ab,kab->k", np.linalg.inv(P0), F))
        program.minimise(logs, np.full(len(logs), -weight))
    if not entropic or options.margin > 0:
        least = max(options.margin, _SMALLEST_EIGENVALUE) if body.is_free else -_SMALLEST_EIGENVALUE
        program.semidefinite(columns, F, g - least * np.eye(len(g)))
    if P0 is None and body.is_free:
        size = -np.trace(F, axis1=1, axis2=2)[None, :]
        program.require("nonnegative", columns, size, np.array([_LARGEST_UNSEEN]))


def _euclidean(program: Program, space: StandardSpace, options: Consistency) -> None:
    """1/2 sum pull |P' - P0'|^2, as one norm."""
    rows, right = [], []
    for body in space.distinct:
        if body.P0 is None or not body.is_free:
            continue
        root = np.sqrt(pull(body, options))
        right.append(root * packed(body.g - body.P0))
        F = np.zeros((len(right[-1]), space.n))
        F[:, body.variables] = root * packed(body.F).T
        rows.append(F)
    if rows:
        program.minimise_norm(np.arange(space.n), np.vstack(rows), np.concatenate(right))


# A generic body has low weight: that of a prior uncertain by a factor of ten.
_GENERIC_SPREAD = 10.0
_VAGUE = 1e-6  # one over the standard deviation of variables without prior, in scaled variables
_ZERO = 1e-3  # standard deviations within which a parameter counts as zero
_FLAT, _FLAT_WITHOUT_PRIOR = 0.01, 1e-5
_UNSEEN_SHARE, _ROUNDING = (
    1e-9,
    1e-6,
)  # of the largest singular value of unit columns; of a unit vector's square


def pull(body: RigidBody, options: Consistency) -> float:
    """Weight of a body's distance to its prior: 1 / spread^2."""
    spread = options.spread if body.given else max(options.spread, _GENERIC_SPREAD)
    return 1.0 / spread**2


def data_share(space: StandardSpace, options: Consistency) -> Float[Array, "p"]:
    """1 - v / v0 of each standard parameter, shape (p,): zero for known values.

    v0 is its variance from the prior alone (the distance to second order, at the prior). v is its variance
    from the data and an independent prior of variance v0 for each entry: information from other entries
    through the shape of the prior counts as prior. Without a prior v0 is very large.
    """
    n, n_x = space.n, space.n_x
    prior = triangle(np.vstack([*_prior_roots(space, options), _VAGUE * np.eye(n)]))
    v0 = np.sum(np.linalg.inv(prior) ** 2, axis=1)[:n_x]
    both = triangle(np.vstack([np.diag(1.0 / np.sqrt(v0)), space.A]))
    v = np.sum(np.linalg.inv(both) ** 2, axis=1)
    share = np.clip(1.0 - v / v0, 0.0, 1.0)
    return np.asarray((space.T != 0) @ share)


def at_bound(space: StandardSpace, x: Float[Array, "n"]) -> Int[Array, "z"]:
    """Variables at zero, of those that cannot be negative and that act in some row."""
    felt = np.linalg.norm(space.A, axis=0) > 0
    small = space.scale * x[: space.n_x] < _ZERO * space.deviation
    return np.asarray(space.signed[(felt & small)[space.signed]])


def determined_alone(space: StandardSpace) -> Bool[Array, "m"]:
    """Variables that the rows determine individually, not only in sums with others, shape (n_x,).

    x_k is such a variable if no x with A x = 0 changes it: e_k is in the row space of A.
    """
    size = np.linalg.norm(space.A, axis=0)
    scaled = space.A / np.where(size > 0, size, 1.0)
    _, s, Vt = np.linalg.svd(scaled, full_matrices=False)
    seen = Vt[s > _UNSEEN_SHARE * s.max(initial=0.0)]
    return np.asarray(np.sum(seen**2, axis=0) > 1.0 - _ROUNDING)


def at_edge(space: StandardSpace, x: Float[Array, "n"]) -> tuple[str, ...]:
    """Bodies with a direction that holds less than a hundredth of the mass the prior puts there.

    A generic prior gives no such limit: then a body counts as flat relative to its own size.
    """
    return tuple(name for name, body in space.every.items() if _is_flat(body, x))


def _is_flat(body: RigidBody, x: Float[Array, "n"]) -> bool:
    if not body.is_free:
        return False
    P = body.value(x)
    if body.P0 is None or not body.given:
        scale = 1.0 / np.sqrt(np.maximum(np.diag(P), np.finfo(float).tiny))
        return bool(np.linalg.eigvalsh(scale[:, None] * P * scale)[0] < _FLAT_WITHOUT_PRIOR)
    root = np.linalg.inv(np.linalg.cholesky(body.P0))
    return bool(np.linalg.eigvalsh(root @ P @ root.T)[0] < _FLAT)


def _prior_roots(space: StandardSpace, options: Consistency) -> list[Float[Array, "r n"]]:
    """Rows whose squares sum to the distance of each body to its prior, to second order."""
    roots = []
    for body in space.distinct:
        if body.P0 is None or not body.is_free:
            continue
        metric = np.eye(len(body.P0))
        if options.prior == "entropic":
            metric = np.asarray(np.linalg.inv(np.linalg.cholesky(body.P0)), dtype=float)
        root = np.zeros((len(packed(metric)), space.n))
        root[:, body.variables] = np.sqrt(pull(body, options)) * packed(metric @ body.F @ metric.T).T
        roots.append(root)
    return roots
