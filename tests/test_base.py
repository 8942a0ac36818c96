from __future__ import annotations

import numpy as np
import pytest

from dynid.base.base import base_set, tie_regrouped, tied_columns
from dynid.base.grouping import grouping_text, invisible, readable, spoken
from dynid.base.system import base_system
from dynid.common.errors import InputError
from dynid.estimator.estimator import ESTIMATORS
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Body, Mechanism, Tie
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import factor_rows
from dynid.projection.projection import System
from tests.systems import group, parameters, system

NAMES = ("XX", "YY", "ZZ", "MX", "M", "MZ")


def structural_rows(rng, n=300):
    """YY = XX + 0.5 ZZ by structure, MZ without effect."""
    W = rng.standard_normal((n, 6))
    W[:, 2] = 0.5 * W[:, 0] - W[:, 1]
    W[:, 5] = 0.0
    return W


def structural_base(rng, known=None, ties=()):
    table = parameters(6, symbols=NAMES)
    W = structural_rows(rng)
    return table, base_set(table, factor_rows(W, np.zeros(len(W))), range(6), known, ties=ties)


def test_names_groupings_eliminated():
    _, base = structural_base(np.random.default_rng(0))
    assert base.names == ("XX_link0_R", "YY_link1_R", "MX_link3", "M_link4")
    assert base.grouped == ("ZZ_link2",)
    assert base.eliminated == ("MZ_link5",)
    assert tuple(readable(one) for one in base.groupings()[:3]) == (
        "XX_link0_R = XX_link0 + 0.5 ZZ_link2",
        "YY_link1_R = YY_link1 - ZZ_link2",
        "",
    )
    assert base.coefficients() == pytest.approx(
        {("XX_link0", "ZZ_link2"): 0.5, ("YY_link1", "ZZ_link2"): -1.0}, abs=1e-13
    )
    assert not base.notices


def test_base_values_explain_the_rows():
    rng = np.random.default_rng(1)
    _, base = structural_base(rng)
    W = structural_rows(rng)
    chi = rng.standard_normal(6)
    # Equal up to the rounding of K and of sums of six terms.
    np.testing.assert_allclose(W @ base.S @ (base.G @ chi), W @ chi, atol=1e-12)


def test_known_values_move_to_the_right_side():
    rng = np.random.default_rng(2)
    table, base = structural_base(rng, known={2: 0.7, 4: 1.5})
    W = structural_rows(rng)
    chi = rng.standard_normal(6)
    chi[[2, 4]] = 0.7, 1.5
    reduced = base_system(system(W, W @ chi, table=table), base)
    assert reduced.names == ("XX_link0", "YY_link1", "MX_link3")
    solution = ESTIMATORS["ols"](reduced.system)
    np.testing.assert_allclose(solution.chi, chi[[0, 1, 3]], atol=1e-12)  # exact data
    # The measured norm is that of the effort, not of what known values leave of it.
    assert reduced.measured_norms[0, 0] == pytest.approx(np.linalg.norm(W @ chi))


def test_ties_before_regrouping_and_after():
    rng = np.random.default_rng(3)
    table = parameters(6, symbols=NAMES)
    W = structural_rows(rng)
    before = base_set(table, factor_rows(W, W[:, 0]), range(6), ties=[(0, 1)])
    # XX + YY = 2 parameters made one; ZZ = 0.5 XX - YY is now independent of their sum.
    assert before.names == ("XX_link0", "ZZ_link2", "MX_link3", "M_link4")
    assert before.tied == {"XX_link0": ("XX_link0", "YY_link1")}
    chi = np.array([2.0, 2.0, 0.3, 1.0, -1.0, 0.0])
    solution = ESTIMATORS["ols"](base_system(system(W, W @ chi, table=table), before).system)
    np.testing.assert_allclose(solution.chi, [2.0, 0.3, 1.0, -1.0], atol=1e-12)

    _, base = structural_base(rng)
    after = tie_regrouped(base, [(3, 4)])
    assert after.names == ("XX_link0_R", "YY_link1_R", "MX_link3")
    chi = np.array([2.0, 1.0, 0.0, 0.4, 0.4, 0.0])
    solution = ESTIMATORS["ols"](base_system(system(W, W @ chi, table=table), after).system)
    np.testing.assert_allclose(solution.chi, [2.0, 1.0, 0.4], atol=1e-12)


def test_tied_value_known_for_one_is_known_for_all_and_conflict_is_refused():
    rng = np.random.default_rng(4)
    _, base = structural_base(rng, known={0: 2.0}, ties=[(0, 1)])
    assert base.c[1] == 2.0
    assert "YY_link1" not in base.names
    with pytest.raises(InputError, match=r"fixed to 3\.0"):
        structural_base(rng, known={0: 2.0, 1: 3.0}, ties=[(0, 1)])


def two_legs():
    axes = (np.array([1.0, 0, 0]), np.array([0, 1.0, 0]))
    joints = tuple(Joint(f"leg{i}", JointKind.UNIVERSAL, "base", f"body{i}", axes=axes) for i in (1, 2))
    bodies = {joint.child: Body(joint.child) for joint in joints}
    return Mechanism("legs", np.array([0.0, 0, -9.81]), joints, bodies, (), ())


def test_tied_columns_entry_by_entry():
    legs = Tie("legs", (("leg1", "leg2"),))
    owners = ("leg1_1", "leg1_2", "leg2_1", "leg2_2")
    table = tuple(Parameter(f"Fv_{o}", "Fv", o, "N m s/rad", "drive") for o in owners)
    assert tied_columns(two_legs(), legs, table) == ((0, 2), (1, 3))
    with pytest.raises(InputError, match="do not all have 'Fv'"):
        tied_columns(two_legs(), legs, table[:3])
    with pytest.raises(InputError, match="'leg2' has no parameters"):
        tied_columns(two_legs(), legs, table[:2])


def seen_by(change, table=None):
    """The base system of data whose rows `change` has impoverished."""
    rng = np.random.default_rng(5)
    table = table or parameters(6, symbols=NAMES)
    W = structural_rows(rng)
    base = base_set(table, factor_rows(W, W[:, 0]), range(6))
    change(W)
    return W, base_system(system(W, W @ np.arange(1.0, 7.0), table=table), base)


def test_zero_column_is_not_identifiable_with_a_reason():
    table = list(parameters(6, symbols=NAMES))
    table[3] = Parameter("Fv_joint_3", "Fv", "joint_3", "N m s/rad", "drive")
    _, reduced = seen_by(lambda W: W.__setitem__((slice(None), 3), 0.0), tuple(table))
    assert list(reduced.unseen) == ["Fv_joint_3"]
    assert reduced.unseen["Fv_joint_3"] == "its column is zero in these data: joint_3 does not move"
    assert [notice.code for notice in reduced.notices] == ["not-excited"]
    assert "Fv_joint_3" in reduced.notices[0].text


def test_what_data_cannot_separate_is_absorbed_and_named():
    _, reduced = seen_by(lambda W: W.__setitem__((slice(None), 4), 0.31 * W[:, 3]))
    assert reduced.names == ("XX_link0_R", "YY_link1_R", "MX_link3_R")
    assert next(iter(reduced.unseen)) == "M_link4"
    assert reduced.unseen["M_link4"] == (
        "the mass of link4 cannot be identified separately in these data: only the sum MX_link3 + 0.31"
        " M_link4 is identifiable"
    )
    assert readable(reduced.groupings()[2]) == "MX_link3_R = MX_link3 + 0.31 M_link4"
    chi = np.arange(1.0, 7.0)
    truth = reduced.values_of(dict(zip((f"{s}_link{i}" for i, s in enumerate(NAMES)), chi, strict=True)))
    solution = ESTIMATORS["ols"](reduced.system)
    np.testing.assert_allclose(solution.chi, list(truth.values()), atol=1e-12)  # exact data


def test_values_of_needs_every_member():
    _, reduced = seen_by(lambda W: None)
    values = reduced.values_of({"XX_link0": 1.0, "MX_link3": 2.0})
    assert values == {"XX_link0_R": None, "YY_link1_R": None, "MX_link3": 2.0, "M_link4": None}


def test_symbols_only_where_the_coefficient_is_still_the_structural_one():
    symbols = {("XX_link0", "ZZ_link2"): "d3^2", ("MX_link3", "M_link4"): "r4"}
    _, reduced = seen_by(lambda W: W.__setitem__((slice(None), 4), 0.31 * W[:, 3]))
    assert reduced.groupings(symbols)[0] == "XX_link0_R = XX_link0 + d3^2 ZZ_link2"
    assert "r4" not in reduced.groupings(symbols)[2]


def test_fewer_rows_than_parameters_are_refused():
    rng = np.random.default_rng(6)
    table, base = structural_base(rng)
    W = structural_rows(rng, n=4)
    with pytest.raises(InputError, match="4 rows cannot determine 4 base parameters"):
        base_system(system(W, W[:, 0], table=table), base)


def test_undecided_rank_is_reported():
    def nearly(W):
        W[:, 3] = W[:, 0] + 2e-7 * W[:, 3]
        W[:, 4] = W[:, 1] + 6e-8 * W[:, 4]

    _, reduced = seen_by(nearly)
    codes = [notice.code for notice in reduced.notices]
    assert "rank-undecided" in codes
    assert "largest gap" in reduced.notices[codes.index("rank-undecided")].text


def test_blocks_of_a_group_give_the_group():
    rng = np.random.default_rng(7)
    table, base = structural_base(rng)
    W = structural_rows(rng)
    data = System(table, (group(W, W[:, 0], blocks=7),))
    reduced = base_system(data, base)
    blocks = reduced.blocked().groups[0].blocks
    assert len(blocks) == 7
    gram = sum(block.R.T @ block.R for block in blocks)
    R = reduced.system.factor().R
    np.testing.assert_allclose(gram, R.T @ R, atol=1e-10)  # sums of 300 squares of order one


def test_rows_over_some_columns_only():
    """Distal joints do not see proximal bodies: their groups list fewer columns."""
    rng = np.random.default_rng(8)
    table = parameters(4)
    base = base_set(table, factor_rows(rng.standard_normal((50, 4)), np.zeros(50)), range(4))
    chi = np.array([1.0, -2.0, 3.0, 0.5])
    W1, W2 = rng.standard_normal((40, 4)), rng.standard_normal((30, 2))
    data = System(
        table,
        (group(W1, W1 @ chi), group(W2, W2 @ chi[2:], name="joint_2", columns=[2, 3])),
    )
    reduced = base_system(data, base)
    np.testing.assert_array_equal(reduced.system.groups[1].columns, [2, 3])
    np.testing.assert_allclose(ESTIMATORS["wls"](reduced.system).chi, chi, atol=1e-12)  # exact data


@pytest.mark.parametrize(
    ("coefficients", "symbols", "text"),
    [
        ({"ZZ_2": 1.0}, None, ""),
        ({"ZZ_2": 1.0, "YY_3": 1.0 + 1e-12, "M_3": 0.050622}, None, "ZZ_2_R = ZZ_2 + YY_3 + 0.050622 M_3"),
        ({"ZZ_2": 1.0, "YY_3": -1.0, "M_3": -2.0}, None, "ZZ_2_R = ZZ_2 - YY_3 - 2 M_3"),
        ({"ZZ_2": 1.0, "YY_3": 1e-12, "M_3": 0.5}, None, "ZZ_2_R = ZZ_2 + 0.5 M_3"),
        ({"ZZ_2": 1.0, "M_3": 0.5}, {("ZZ_2", "M_3"): "d3^2 + r4^2"}, "ZZ_2_R = ZZ_2 + (d3^2 + r4^2) M_3"),
        ({"ZZ_2": 1.0, "M_3": -0.5}, {("ZZ_2", "M_3"): "-d4 r4"}, "ZZ_2_R = ZZ_2 - d4 r4 M_3"),
        ({"ZZ_2": 1.0, "M_3": -0.5}, {("ZZ_2", "M_3"): "-d3 - r4"}, "ZZ_2_R = ZZ_2 - (d3 + r4) M_3"),
        ({"ZZ_2": 1.0, "M_3": -0.5}, {("ZZ_2", "M_3"): "d3 - r4"}, "ZZ_2_R = ZZ_2 + (d3 - r4) M_3"),
        ({"ZZ_2": 1.0, "M_3": -0.5}, {("ZZ_2", "M_3"): "-1"}, "ZZ_2_R = ZZ_2 - M_3"),
    ],
)
def test_grouping_text(coefficients, symbols, text):
    assert grouping_text(coefficients, symbols) == text


def test_what_no_motion_shows_is_told_by_the_sums_that_act():
    _, reduced = seen_by(lambda W: None)
    told = reduced.invisible()
    assert told == {
        "ZZ_link2": "the inertia of link2 about z cannot be identified separately: only the sums"
        " XX_link0 + 0.5 ZZ_link2 and YY_link1 - ZZ_link2 are identifiable",
        "MZ_link5": "it has no effect on the efforts used, for any motion",
    }


@pytest.mark.parametrize(
    ("symbol", "kind", "text"),
    [
        ("M", "inertial", "the mass of a"),
        ("MX", "inertial", "the mass times centre of mass of a along x"),
        ("XY", "inertial", "the product of inertia xy of a"),
        ("YY", "inertial", "the inertia of a about y"),
        ("Fs+", "drive", "the Coulomb friction of a (forwards)"),
        ("Ia", "drive", "the rotor inertia of a"),
        ("Spring", "term", "Spring_a"),
        ("XZ/M", "drive", "XZ/M_a"),  # per unit mass, as a result lists it
    ],
)
def test_parameters_have_spoken_names(symbol, kind, text):
    assert spoken(Parameter(f"{symbol}_a", symbol, "a", "", kind)) == text


def test_other_sums_are_counted():
    table = parameters(3)
    rows = [{f"Q{i}": 1.0, "P1_link1": 2.0, "P2_link2": 1.0} for i in range(5)]
    assert invisible(table[1], rows).endswith(
        "only the sums Q0 + 2 P1_link1 + ..., Q1 + 2 P1_link1 + ..., Q2 + 2 P1_link1 + ..."
        " and 2 more are identifiable"
    )
    assert "has no effect" in invisible(table[0], rows)
