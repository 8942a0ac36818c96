"""Every row of the fault table has its tests; those that no other file holds are here."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import expanding, load_robot
from dynid.motion.logs import log_from_columns
from dynid.problem import prepare
from tests.arms import arm, recording
from tests.workspace import dynid

HERE = Path(__file__).parent
XACRO = """<robot name="a" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="prefix" default="my_"/>
<link name="base"/><link name="up"><inertial><mass value="${1+0.5}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"
 iyz="0" izz="1"/></inertial></link><joint name="$(arg prefix)turn" type="continuous"><parent link="base"/>
<child link="up"/><axis xyz="0 0 1"/></joint></robot>"""


# Tests are named after their row of the fault table, `test_16_...`: rows 1 to 60 as agreed, later ones added.
# These belong to a row too: row, file and function, without `test_`.
WITHOUT_NUMBER = """
14 expression::refusals
14 more_descriptions::a_par_file_that_cannot_be_read_is_refused
18 readers::every_format_gives_the_same_log
21 column_names::numbers_from_0_with_more_columns_than_joints_are_refused
24 estimators::contract
32 identification::angles_in_degrees_are_suspected
32 column_names::a_unit_that_is_not_known_is_refused
32 column_names::the_scale_of_a_share_of_a_rated_torque_is_doubted
38 alarms::a_long_contact_is_a_burst_and_a_poor_fit
38 residual_tests::outlying_runs_and_bursts_are_named
38 window::a_window_without_an_interval_leaves_two_runs
40 base::zero_column_is_not_identifiable_with_a_reason
41 nist::certified_digits_in_blocks
41 estimators::ill_conditioned_rows_are_reported
42 rank::a_column_near_the_threshold_is_not_decided
43 survey::a_log_that_does_not_close_is_refused_with_sample_loop_and_gap
43 turns::a_small_zero_error_of_a_redundant_encoder_is_a_warning_with_its_size
43 turns::a_large_zero_error_and_a_step_are_refused_with_joint_time_and_cause
44 survey::singular_and_open_poses_are_counted_and_left_out
45 consistent::real_bodies_raise_no_alarm_and_impossible_ones_do
45 export_models::what_is_not_physical_is_refused_marked_or_replaced
46 estimators::no_convergence_is_said
46 consistent::what_contradicts_itself_is_called_infeasible
46 cli::no_result_is_exit_3
46 cli::no_result_saves_what_was_found
47 correlation::only_close_pairs_warn
47 standard::parameters_at_a_bound_are_named
47 weak::what_only_other_motion_needs_is_weak
49 excite::killed_and_resumed_gives_the_identical_result
49 output::result_moved_aside_by_a_killed_run_comes_back
50 output::failure_halfway_leaves_the_old_result
51 long_logs::blocks_change_nothing
51 long_logs::memory_of_cleaning_does_not_grow_with_the_log
52 campaign::only_the_run_that_kills_its_process_is_lost
53 cli::interrupt_is_exit_130
53 interrupts::a_lost_interrupt_ends_the_run_at_its_next_stage
54 output::two_runs_in_one_folder_are_refused
54 output::lock_of_a_dead_process_is_taken_over
54 output::an_empty_lock_is_of_a_killed_run
55 faults_cli::results_name_no_home_and_move_with_their_inputs
56 json_file::other_schema_is_refused
57 report_html::hostile_names_do_nothing
58 export_models::hostile_names_break_no_export
59 json_file::parameters_that_are_not_finite_are_refused
61 turns::whole_turns_of_redundant_encoders_change_nothing
62 turns::a_large_zero_error_and_a_step_are_refused_with_joint_time_and_cause
63 batched::bad_matrices_give_nan_and_leave_the_others_as_they_are
66 output::a_link_stays_and_its_target_gets_the_result
66 output::the_current_folder_stays_and_gets_the_result
68 alarms::a_wrong_gravity_is_called_so_and_nothing_else
69 survey::a_log_on_another_branch_is_flagged
"""
NUMBERED = re.compile(r"test_(?:fault_)?((?:[0-9]{2}_)+)")


@cache
def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def listed_by_row() -> set[tuple[int, str, str]]:
    """Row, file and function: by the numbers in the names of tests, and those listed above."""
    pairs = [line.split() for line in WITHOUT_NUMBER.splitlines() if line]
    rows = {(int(row), *test.split("::")) for row, test in pairs}
    for file in HERE.glob("test_*.py"):
        for name in functions_of(file):
            numbers = NUMBERED.match(name)
            for number in numbers[1].split("_")[:-1] if numbers else ():
                rows.add((int(number), file.stem[5:], name[5:]))
    return rows


def test_every_row_has_tests_that_exist() -> None:
    rows = listed_by_row()
    assert {row for row, _, _ in rows} == set(range(1, 71))
    for row, file, name in rows:
        assert f"test_{name}" in functions_of(HERE / f"test_{file}.py"), f"row {row}: {file}::{name}"


def test_05_the_command_line_can_lift_the_limits_that_it_names(tmp_path: Path) -> None:
    """The remedy of a refusal can be followed."""
    links = "".join(f"<link name='l{i}'/>" for i in range(1100))
    joints = "".join(
        f"<joint name='j{i}' type='fixed'><parent link='l{i}'/><child link='l{i + 1}'/></joint>"
        for i in range(1098)
    )
    last = "<joint name='turn' type='continuous'><parent link='l1098'/><child link='l1099'/></joint>"
    file = tmp_path / "large.urdf"
    file.write_text(f"<robot name='large'>{links}{joints}{last}</robot>", encoding="utf-8")
    refused = dynid("info", str(file))
    assert refused.exit_code == 2
    assert "--no-limits" in refused.output
    assert dynid("--no-limits", "info", str(file)).exit_code == 0


@pytest.mark.parametrize(("name", "said"), [("arm.xacro", "xacro arm.xacro"), ("arm.usd", "usd2mjcf")])
def test_14_xacro_and_usd_are_refused_with_their_converter(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_text(XACRO, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_robot(tmp_path / name)
    assert said in (caught.value.remedy or "")


def test_14_xacro_is_expanded_only_if_asked(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    file = tmp_path / "arm.xacro"
    file.write_text(XACRO, encoding="utf-8")
    assert "left_turn" in dynid("--xacro", "prefix:=left_", "info", str(file), "--json").output
    with expanding():
        (joint,) = load_robot(file).joints
        assert joint.name == "my_turn"
        file.write_text(XACRO.replace("1+0.5", "(1).__class__"), encoding="utf-8")
        with pytest.raises(InputError, match="cannot be expanded"):
            load_robot(file)
        file.write_text(XACRO.replace("${1+0.5}", "heavy"), encoding="utf-8")
        with pytest.raises(InputError, match="not a finite number"):
            load_robot(file)
    assert dynid("--xacro", "prefix", "robots").exit_code == 2


def test_21_a_missing_effort_beside_an_unmatched_effort_column_is_refused() -> None:
    columns = recording()
    columns["tau_3"] = columns.pop("tau_2")
    log = log_from_columns(columns, arm())
    assert "effort-unmatched" in [one.code for one in log.notices]
    with pytest.raises(InputError, match=r"no column for tau_2.*tau_3"):
        prepare(arm(), [log], Experiment(robot=arm()))
    prepare(arm(), [log], Experiment(robot=arm(), efforts=(1,)))


PROCESSORS = {
    "as it is": {},
    "an old one": {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F"},
    "two threads": {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"},
}


def test_70_another_processor_gives_the_same_choices_verdict_and_values(tmp_path: Path) -> None:
    """Other instructions of BLAS and NumPy round differently; sigmas are 1e6 times larger than that."""
    start = [sys.executable, "-m", "dynid"]
    options = {"cwd": tmp_path, "check": True, "capture_output": True}
    subprocess.run([*start, "simulate", "rrr3", "--duration", "3", "--out", "a.csv"], **options)
    results = []
    for k, environment in enumerate(PROCESSORS.values()):
        command = [*start, "identify", "--robot", "rrr3", "--log", "a.csv", "--out", f"r{k}"]
        subprocess.run(command, env={**os.environ, **environment}, **options)
        results.append(json.loads((tmp_path / f"r{k}" / "result.json").read_text()))
    first, *others = results
    for other in others:
        assert other["verdict"]["level"] == first["verdict"]["level"]
        assert [said["code"] for said in other["warnings"]] == [said["code"] for said in first["warnings"]]
        chosen = [[tried["chosen"] for tried in result.get("choices_tried", [])] for result in (first, other)]
        assert chosen[0] == chosen[1]
        for a, b in zip(first["parameters"], other["parameters"], strict=True):
            assert a["name"] == b["name"]
            assert b["value"] == pytest.approx(a["value"], rel=1e-9, abs=1e-6 * (a["sigma"] or 0.0))
