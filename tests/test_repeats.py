"""Repeated motions: found where they are, and counted once for what the model lacks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.estimator.gains import GroupNoise, solve_gains
from dynid.mechanism.parameters import Parameter
from dynid.motion.repeats import first_alike, path_along
from dynid.projection.factor import Factor, triangle
from dynid.projection.projection import Group, System
from dynid.statistics.clusters import Clusters, clusters_of
from dynid.statistics.covariance import blocks_of, covariance_of
from dynid.statistics.uncertainty import UncertaintySettings, interval95

RATE, SECONDS, JOINTS = 50.0, 10.0, 2
T = np.arange(int(RATE * SECONDS)) / RATE


def fourier(rng, t=T):
    """Positions, rates and second rates of a motion with a period of 10 s, each shape (n, 2)."""
    w = 2.0 * np.pi * np.arange(1, 6) / SECONDS
    a, b = rng.standard_normal((2, 5, JOINTS)) / np.arange(1, 6)[None, :, None]
    sine, cosine = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q = sine @ a + cosine @ b
    return q, (cosine * w) @ a - (sine * w) @ b, -(sine * w**2) @ a - (cosine * w**2) @ b


def stretches(log, n):
    length = SECONDS / n
    return [(log, 0, k * length, (k + 1) * length) for k in range(n)]


def path(q):
    return path_along(q, [(0, len(q))], 1.0 / RATE, [0.0])


def test_a_motion_recorded_again_is_found_at_any_shift_and_another_one_is_not() -> None:
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    q = fourier(rng)[0]
    rng.bit_generator.state = state
    late = fourier(rng, T + 1.7)[0] + 0.01 * rng.standard_normal(q.shape)
    other = fourier(rng)[0]
    paths = {"a": path(q), "late": path(late), "other": path(other)}
    first = first_alike(paths, [one for log in paths for one in stretches(log, 10)])
    assert np.array_equal(first[:10], np.arange(10))
    # 1.7 s later: each second repeats what came two seconds later before. The period closes inside the ninth
    # second, which so comes nowhere else.
    assert np.array_equal(first[10:20], [2, 3, 4, 5, 6, 7, 8, 9, 18, 1])
    assert np.array_equal(first[20:], np.arange(20, 30))


def test_periods_of_one_run_repeat_each_other() -> None:
    q = np.tile(fourier(np.random.default_rng(1))[0], (3, 1))
    whole = path_along(q, [(0, len(q))], 1.0 / RATE, [0.0])
    some = [("a", 0, float(k), float(k + 1)) for k in range(30)]
    assert np.array_equal(first_alike({"a": whole}, some), np.tile(np.arange(10), 3))


def pendulum_rows(q, dq, ddq, loaded):
    """Columns J, m g, Fv, Fs, Off of a joint, and what a known load does there."""
    known = loaded * (0.5 * ddq + 5.0 * np.cos(q))
    return np.column_stack([ddq, np.cos(q), dq, np.sign(dq), np.ones_like(q)]), known


def arm_with_other_friction(seed, runs):
    """Two joints whose friction the model lacks; `runs` are (motion, loaded). Equations and true gains."""
    rng = np.random.default_rng([31, seed])
    gains = rng.uniform(0.6, 1.5, JOINTS)
    chi = np.array([2.0, 8.0, 3.0, 2.0, 0.3])
    names = [Parameter(f"{s}{k}", s, f"j{k}", "1", "inertial") for k in range(JOINTS) for s in "JGVSO"]
    names += [Parameter(f"gain_j{k}", "gain", f"j{k}", "1", "gain") for k in range(JOINTS)]
    size, speed = rng.uniform(0.5, 1.0, JOINTS), rng.uniform(0.1, 0.4, JOINTS)
    motions = [fourier(rng) for _ in range(1 + max(motion for motion, _ in runs))]
    groups = []
    for i, (motion, loaded) in enumerate(runs):
        moved = motions[motion]
        for k in range(JOINTS):
            q, dq, ddq = (x[:, k] for x in moved)
            W, w = pendulum_rows(q, dq, ddq, loaded)
            # A Stribeck curve and viscous friction that differ with the direction of the motion.
            lacking = np.where(dq > 0, 1.5, -0.5) * size[k] * np.exp(-((dq / speed[k]) ** 2))
            lacking += 0.3 * size[k] * np.abs(dq)
            current = (W @ chi + w + lacking) / gains[k] + 0.05 * rng.standard_normal(len(q))
            C = np.zeros((len(q), JOINTS))
            C[:, k] = current
            rows = np.column_stack([W, -C, -w])
            blocks = tuple(Factor(triangle(part), len(part)) for part in np.array_split(rows, 20))
            columns = np.append(5 * k + np.arange(5), 5 * JOINTS + np.arange(JOINTS))
            groups.append(
                Group(f"j{k}", f"run {i}", "N m", columns, blocks, seconds=0.5, path=path(moved[0]))
            )
    return System(tuple(names), tuple(groups)), gains


NINE = [(k // 3, k >= 3) for k in range(9)]


def held(system, gains):
    noise = [GroupNoise((np.arange(JOINTS) == int(one.name[1:])).astype(float)) for one in system.groups]
    found = solve_gains(system, noise)
    spread = covariance_of(system, found.solution)
    ci = interval95(found.solution.chi, spread.covariance, spread.dof)[-JOINTS:]
    return (ci[:, 0] <= gains) & (ci[:, 1] >= gains)


def without_paths(system):
    return replace(system, groups=tuple(replace(group, path=None) for group in system.groups))


def test_intervals_of_gains_hold_with_friction_that_the_model_lacks() -> None:
    """Nine runs of three motions: what the model lacks is the same in each repeat."""
    drawn = [arm_with_other_friction(seed, NINE) for seed in range(40)]
    hits = np.array([held(*one) for one in drawn])
    # 40 intervals each: 95 % +- 3.4 %.
    assert np.all(np.mean(hits, axis=0) >= 0.90)
    assert np.all(np.mean(hits, axis=0) <= 0.99)
    blind = np.array([held(without_paths(system), gains) for system, gains in drawn[:20]])
    # Blocks and runs alone hold two of three.
    assert np.mean(blind) < 0.8


def test_errors_that_come_again_with_a_motion_are_counted_in_long_blocks() -> None:
    """They last as long as the motion keeps its direction, for some seconds in a period of ten."""
    system, _ = arm_with_other_friction(0, NINE)
    noise = [GroupNoise((np.arange(JOINTS) == int(one.name[1:])).astype(float)) for one in system.groups]
    solution = solve_gains(system, noise).solution
    assert covariance_of(system, solution).facts["different_blocks"] == 9
    asked = UncertaintySettings(block=1.0)
    assert covariance_of(system, solution, asked).facts["different_blocks"] == 30


def test_repeats_are_one_cluster_and_runs_of_a_motion_one_motion() -> None:
    system, _ = arm_with_other_friction(0, NINE)
    clusters = clusters_of(system, np.zeros(12), np.ones(18), 1.0)
    assert len(clusters) == 90
    assert len(clusters.distinct()) == 30
    assert len(clusters.by_motion()) == 3
    assert np.array_equal(clusters.distinct().runs, np.repeat(np.arange(3), 10))
    plain = clusters_of(without_paths(system), np.zeros(12), np.ones(18), 1.0)
    assert len(plain.distinct()) == 90
    assert len(plain.by_motion()) == 9
    # Joined clusters hold all rows.
    assert np.allclose(clusters.distinct().M.sum(axis=0), np.eye(12), atol=1e-9)


def test_tests_of_restrictions_count_repeats_once() -> None:
    system, _ = arm_with_other_friction(0, NINE)
    noise = [GroupNoise((np.arange(JOINTS) == int(one.name[1:])).astype(float)) for one in system.groups]
    solution = solve_gains(system, noise).solution
    blocks = blocks_of(system, solution, UncertaintySettings())
    assert blocks is not None
    assert len(blocks) == 30


def repeated_rows(rng, lacking):
    """Clusters of four repeats of a motion of four blocks, 8 parameters; `lacking` comes again with it."""
    n, p, repeats, blocks = 20, 8, 4, 4
    W = np.tile(rng.standard_normal((n * blocks, p)), (repeats, 1))
    Y = rng.standard_normal(len(W)) + lacking * np.tile(rng.standard_normal(n * blocks), repeats)
    Q, R = np.linalg.qr(W)
    rho = Y - Q @ (Q.T @ Y)
    Z, r = Q.reshape(-1, n, p), rho.reshape(-1, n)
    M, s = np.einsum("cni,cnj->cij", Z, Z), np.einsum("cni,cn->ci", Z, r)
    count = repeats * blocks
    origins = np.tile(np.arange(blocks), repeats)
    rows, runs = np.full(count, n), np.zeros(count, dtype=int)
    return Clusters(np.linalg.inv(R), M, s, rows, runs, 1.0, first=origins)


def test_errors_that_come_again_with_a_motion_are_told_from_noise() -> None:
    rng = np.random.default_rng(5)
    noise = np.mean([repeated_rows(rng, 0.0).recurring for _ in range(200)])
    # Above one standard deviation: 16 %; of 200 draws +- 2.6 %.
    assert 0.08 < noise < 0.24
    # As large as the noise: z is 3.7 +- 0.5 with 24 pairs of 8 scores.
    assert all(repeated_rows(rng, 1.0).recurring for _ in range(50))
