"""The regressor equals independent inverse dynamics on random trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS
from dynid.mechanism.joint import JointKind
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.few_states import few_states_matrix
from dynid.regressor.regressor import energy_entries, energy_row, tree_matrix
from dynid.regressor.wrench import wrench_regressor
from tests.oracle import pin, pinocchio_regressor
from tests.parameter_orders import from_pinocchio
from tests.random_mechanisms import random_inertias, random_states, random_tree


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), n_bodies=st.integers(1, 30))
def test_regressor_equals_pinocchio_on_random_trees(seed: int, n_bodies: int) -> None:
    rng = np.random.default_rng(seed)
    mechanism = random_tree(rng, n_bodies)
    q, dq, ddq = random_states(rng, mechanism, 3)
    W = tree_matrix(mechanism, q, dq, ddq)
    expected = pinocchio_regressor(mechanism, q, dq, ddq)
    # Both sides sum chains of up to 30 products in float64: 1e-11 of the largest entry.
    np.testing.assert_allclose(W, expected, rtol=0, atol=1e-11 * max(np.abs(expected).max(initial=0), 1))


@pytest.mark.parametrize("kind", list(JointKind))
def test_every_joint_kind_equals_pinocchio(kind: JointKind) -> None:
    rng = np.random.default_rng(5)
    mechanism = random_tree(rng, 5, kinds=(kind, JointKind.REVOLUTE), chain=True)
    q, dq, ddq = random_states(rng, mechanism, 70)  # more than one tile of lanes, the last one short
    W = tree_matrix(mechanism, q, dq, ddq)
    expected = pinocchio_regressor(mechanism, q, dq, ddq)
    # Rounding of chains of five frames.
    np.testing.assert_allclose(W, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_power_is_the_rate_of_energy_by_the_complex_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mechanism = random_tree(rng, 8)
    q, dq, ddq = random_states(rng, mechanism, 4)
    chi = random_inertias(rng, 8)
    step = 1e-30
    q_dot = _position_rates(mechanism, q, dq)
    energy = energy_row(mechanism, q + 1j * step * q_dot, dq + 1j * step * ddq)
    rate = energy.imag / step @ chi
    power = np.einsum("nv,nvp->np", dq, tree_matrix(mechanism, q, dq, ddq)) @ chi
    # The complex step is exact up to rounding of the energies involved.
    np.testing.assert_allclose(rate, power, rtol=0, atol=1e-10 * max(np.abs(power).max(), 1))


def test_energies_along_a_log_are_those_of_the_energy_row() -> None:
    rng = np.random.default_rng(3)
    mechanism = random_tree(rng, 8)
    q, dq, _ = random_states(rng, mechanism, 70)  # more than one tile of lanes, the last one short
    places = np.full(80, -1)
    wanted = rng.permutation(80)[:50]
    places[wanted] = np.arange(50)
    expected = energy_row(mechanism, q, dq)[:, wanted].T
    found = energy_entries(mechanism, q, dq, places)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())  # rounding


def _position_rates(mechanism, q, dq):
    """dq/dt of the positions; for quaternions q omega / 2."""
    rates, iq, iv = [], 0, 0
    for joint in mechanism.joints:
        nq, nv = len(joint.positions), len(joint.coordinates)
        rate = dq[:, iv : iv + nv]
        if joint.has_quaternion:
            w, x, y, z = q[:, iq + nq - 4 : iq + nq].T
            a, b, c = rate[:, -3:].T
            scalar = -x * a - y * b - z * c
            vector = [w * a + y * c - z * b, w * b + z * a - x * c, w * c + x * b - y * a]
            spin = 0.5 * np.stack([scalar, *vector], axis=1)
            rate = np.concatenate([rate[:, :-3], spin], axis=1)
        rates.append(rate)
        iq, iv = iq + nq, iv + nv
    return np.concatenate(rates, axis=1)


def test_complex_states_give_complex_regressors() -> None:
    rng = np.random.default_rng(3)
    mechanism = random_tree(rng, 4, kinds=(JointKind.REVOLUTE, JointKind.PRISMATIC))
    q, dq, ddq = random_states(rng, mechanism, 2)
    direction, step, h = rng.normal(size=q.shape), 1e-30, 1e-6
    exact = tree_matrix(mechanism, q + 1j * step * direction, dq, ddq).imag / step
    ahead = tree_matrix(mechanism, q + h * direction, dq, ddq)
    behind = tree_matrix(mechanism, q - h * direction, dq, ddq)
    # Central differences: h^2 truncation and 1e-16/h rounding meet near 1e-9.
    np.testing.assert_allclose(exact, (ahead - behind) / (2 * h), atol=1e-7 * np.abs(exact).max())


def test_wrench_kernel_equals_body_regressor() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        v, a = pin.Motion(rng.normal(size=6)), pin.Motion(rng.normal(size=6))
        classical = a.linear + np.cross(v.angular, v.linear)
        dV = np.concatenate([classical, a.angular])[None, None]
        W = wrench_regressor(v.angular[None, None], dV)[0, 0]
        # One body, a handful of products: rounding only.
        np.testing.assert_allclose(W, from_pinocchio(pin.bodyRegressor(v, a)), atol=1e-14)


def test_body_wrenches_projected_on_the_joints_are_the_rows() -> None:
    rng = np.random.default_rng(11)
    mechanism = random_tree(rng, 6)
    q, dq, ddq = random_states(rng, mechanism, 5)
    tree = tree_of(mechanism)
    motion = body_motion(tree, q, dq, ddq)
    W_body = wrench_regressor(motion.V[..., 3:], motion.dV)
    W = tree_matrix(mechanism, q, dq, ddq)
    for k in range(dq.shape[1]):
        # V is linear in dq: its column k is the twist per unit of coordinate k.
        unit_rate = np.zeros_like(dq)
        unit_rate[:, k] = 1.0
        J = body_motion(tree, q, unit_rate, ddq).V
        rows = np.einsum("nbi,nbip->nbp", J, W_body).reshape(len(q), -1)
        np.testing.assert_allclose(W[:, k], rows, atol=1e-12 * np.abs(rows).max())


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), n_bodies=st.integers(1, 20))
def test_the_equation_and_the_compiled_rows_agree(seed: int, n_bodies: int) -> None:
    rng = np.random.default_rng(seed)
    mechanism = random_tree(rng, n_bodies)
    drive = dict.fromkeys(mechanism.coordinates[:3], DRIVE_SYMBOLS)
    mechanism = replace(mechanism, drive=drive)
    states = random_states(rng, mechanism, 5)
    load = np.abs(rng.normal(size=(5, sum(mechanism.actuator_map.shape))))
    W = few_states_matrix(mechanism, parameter_table(mechanism), states, load=load)
    expected = tree_matrix(mechanism, *states, load=load)
    # Both sum chains of up to 20 products in float64.
    np.testing.assert_allclose(W, expected, rtol=0, atol=1e-11 * max(np.abs(expected).max(initial=0), 1))
