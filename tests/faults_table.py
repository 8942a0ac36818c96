"""The fault table of the project: its rows, and the tests that hold dynid to each of them."""

from __future__ import annotations

# Row -> tests, as file::function. Rows 1 to 60 are the table as agreed, those from 61 on came later.
ROWS: dict[int, tuple[str, ...]] = {
    1: ("test_faults_description.py::test_fault_01_entity_bomb",),
    2: ("test_faults_description.py::test_fault_02_external_entity",),
    3: ("test_faults_description.py::test_fault_03_truncated_xml",),
    4: ("test_faults_description.py::test_fault_04_mesh_path_that_leaves_its_root",),
    5: (
        "test_faults_description.py::test_fault_05_huge_model",
        "test_faults_description.py::test_fault_05_huge_model_with_override",
        "test_faults_table.py::test_05_the_command_line_can_lift_the_limits_that_it_names",
    ),
    6: ("test_faults_description.py::test_fault_06_numbers_that_are_none",),
    7: ("test_faults_description.py::test_fault_07_impossible_prior",),
    8: ("test_faults_description.py::test_fault_08_missing_inertial_is_unknown",),
    9: ("test_faults_description.py::test_fault_09_duplicate_names",),
    10: ("test_faults_description.py::test_fault_10_not_a_tree",),
    11: ("test_faults_description.py::test_fault_11_axes_limits_mimics",),
    12: ("test_faults_description.py::test_fault_12_unknown_elements_and_keys",),
    13: ("test_faults_description.py::test_fault_13_hostile_yaml",),
    14: (
        "test_expression.py::test_refusals",
        "test_more_descriptions.py::test_a_par_file_that_cannot_be_read_is_refused",
        "test_faults_table.py::test_14_xacro_and_usd_are_refused_with_their_converter",
        "test_faults_table.py::test_14_xacro_is_expanded_only_if_asked",
    ),
    15: (
        "test_readers.py::test_15_objects_are_never_loaded",
        "test_faults_cli.py::test_15_formats_that_are_not_read_are_never_opened",
    ),
    16: (
        "test_readers.py::test_16_a_header_that_declares_more_than_the_file_is_refused",
        "test_readers.py::test_16_an_archive_that_grows_beyond_reason_is_not_read",
        "test_readers.py::test_16_a_compressed_variable_that_grows_beyond_reason_is_not_read",
        "test_readers.py::test_16_a_text_that_grows_beyond_reason_is_not_read",
        "test_faults_log.py::test_16_a_parquet_file_that_grows_beyond_reason_is_not_read",
    ),
    17: ("test_readers.py::test_17_hdf5_never_leaves_its_file",),
    18: ("test_readers.py::test_18_an_object_of_matlab_73_is_refused_with_the_way_out",),
    19: ("test_faults_log.py::test_19_delimiters_are_sniffed_and_shown",),
    20: (
        "test_faults_log.py::test_20_bad_cells_are_refused_with_row_column_and_text",
        "test_faults_log.py::test_20_a_column_in_the_digits_of_another_script_is_no_text_column",
        "test_faults_log.py::test_20_a_lone_quote_is_refused_with_its_place",
    ),
    21: (
        "test_faults_log.py::test_21_duplicate_header_is_refused",
        "test_faults_log.py::test_21_unmatched_joints_efforts_and_time_are_refused",
        "test_faults_table.py::test_21_a_missing_effort_beside_an_unmatched_effort_column_is_refused",
    ),
    22: ("test_readers.py::test_22_an_unfinished_mcap_file_gives_what_it_contains",),
    23: ("test_readers.py::test_23_a_damaged_chunk_is_left_out_and_reported",),
    24: ("test_faults_log.py::test_24_bad_samples_split_the_log_and_never_reach_the_states",),
    25: ("test_faults_log.py::test_25_gaps_split_according_to_the_cutoff",),
    26: (
        "test_faults_log.py::test_26_a_few_samples_out_of_order_are_sorted_and_flagged",
        "test_faults_log.py::test_26_many_samples_out_of_order_are_refused",
    ),
    27: ("test_faults_log.py::test_27_equal_doubles_are_dropped_conflicting_ones_refused",),
    28: ("test_faults_log.py::test_28_clock_reset_and_jump_split_with_a_warning",),
    29: (
        "test_faults_log.py::test_29_jitter_is_resampled_and_stated",
        "test_readers.py::test_29_topics_at_100_and_500_hz_share_the_clock_of_the_positions",
    ),
    30: (
        "test_faults_log.py::test_30_time_unit_is_inferred_and_told",
        "test_faults_log.py::test_30_a_row_number_is_not_taken_as_time_unless_its_unit_is_given",
        "test_faults_log.py::test_30_impossible_rates_are_refused",
    ),
    31: (
        "test_residual_tests.py::test_31_a_delay_of_one_sample_is_found_with_its_size",
        "test_pose_columns.py::test_31_late_efforts_of_a_redundant_robot_are_found_with_their_size",
    ),
    32: (
        "test_faults_log.py::test_32_velocity_in_degrees_is_refused_with_the_likely_cause",
        "test_scale_checks.py::test_32_a_log_in_newton_millimetres_is_told_with_its_unit",
        "test_identification.py::test_angles_in_degrees_are_suspected",
    ),
    33: ("test_faults_cli.py::test_33_signs_and_order_of_efforts_are_refused_with_the_likely_fix",),
    34: (
        "test_residual_tests.py::test_34_a_gain_off_by_ten_percent_names_the_motor",
        "test_residual_tests.py::test_34_a_scale_far_from_the_priors_is_told",
        "test_gains.py::test_34_no_known_mass_anywhere_is_refused_in_plain_words",
        "test_total_mass.py::test_34_the_mass_accuses_efforts_of_a_wrong_gain_and_acquits_right_ones",
        "test_doctor.py::test_34_a_scale_that_nothing_checks_is_said",
    ),
    35: (
        "test_residual_tests.py::test_35_a_joint_zero_off_by_five_degrees_names_the_joint",
        "test_pose_columns.py::test_35_a_zero_off_in_a_closed_robot_is_named_and_a_clean_log_is_left_alone",
        "test_doctor.py::test_35_zeros_that_the_motion_cannot_show_are_listed",
    ),
    36: ("test_faults_log.py::test_36_inconsistent_velocity_warns_then_refuses",),
    37: (
        "test_faults_signals.py::test_37_spikes_of_efforts_are_masked_and_counted",
        "test_faults_signals.py::test_37_saturation_is_masked_and_told",
        "test_faults_signals.py::test_37_a_sensor_that_hangs_is_told",
        "test_faults_signals.py::test_37_coarse_efforts_are_told",
    ),
    38: (
        "test_alarms.py::test_a_long_contact_is_a_burst_and_a_poor_fit",
        "test_residual_tests.py::test_outlying_runs_and_bursts_are_named",
        "test_window.py::test_a_window_without_an_interval_leaves_two_runs",
    ),
    39: (
        "test_faults_cli.py::test_39_fewer_rows_than_base_parameters_are_refused",
        "test_faults_cli.py::test_39_a_log_of_a_moment_gives_a_result_without_residual_tests",
    ),
    40: (
        "test_base.py::test_zero_column_is_not_identifiable_with_a_reason",
        "test_doctor.py::test_40_a_joint_that_rests_is_named_in_words",
    ),
    41: (
        "test_nist.py::test_certified_digits_in_blocks",
        "test_estimators.py::test_ill_conditioned_rows_are_told",
    ),
    42: ("test_rank.py::test_a_column_near_the_threshold_is_not_decided",),
    43: (
        "test_survey.py::test_a_log_that_does_not_close_is_refused_with_sample_loop_and_gap",
        "test_turns.py::test_a_small_zero_error_of_a_redundant_encoder_is_a_warning_with_its_size",
        "test_turns.py::test_a_large_zero_error_and_a_step_are_refused_with_joint_time_and_cause",
    ),
    44: ("test_survey.py::test_singular_and_open_poses_are_counted_and_left_out",),
    45: (
        "test_consistent.py::test_real_bodies_raise_no_alarm_and_impossible_ones_do",
        "test_export_models.py::test_what_is_not_physical_is_refused_marked_or_replaced",
    ),
    46: (
        "test_estimators.py::test_no_convergence_is_said",
        "test_consistent.py::test_what_contradicts_itself_is_called_infeasible",
    ),
    47: ("test_correlation.py::test_only_close_pairs_warn",),
    48: ("test_faults_cli.py::test_48_a_log_of_the_fit_proves_nothing",),
    49: (
        "test_multistart.py::test_49_damaged_lines_of_a_journal_are_done_again",
        "test_excite.py::test_killed_and_resumed_gives_the_identical_result",
        "test_output.py::test_result_moved_aside_by_a_killed_run_comes_back",
    ),
    50: (
        "test_faults_cli.py::test_50_read_only_and_full_disks_are_refused_before_the_work",
        "test_output.py::test_failure_halfway_leaves_the_old_result",
    ),
    51: (
        "test_faults_cli.py::test_51_no_memory_is_told_without_a_traceback",
        "test_long_logs.py::test_blocks_change_nothing",
        "test_long_logs.py::test_memory_of_cleaning_does_not_grow_with_the_log",
    ),
    52: (
        "test_multistart.py::test_52_a_killed_process_is_replaced",
        "test_multistart.py::test_52_a_number_that_kills_every_process_is_named",
    ),
    53: (
        "test_cli.py::test_interrupt_is_exit_130",
        "test_interrupts.py::test_a_lost_interrupt_ends_the_run_at_its_next_stage",
    ),
    54: (
        "test_output.py::test_two_runs_in_one_folder_are_refused",
        "test_output.py::test_lock_of_a_dead_process_is_taken_over",
        "test_output.py::test_an_empty_lock_is_of_a_killed_run",
    ),
    55: (
        "test_faults_cli.py::test_55_a_robot_file_that_changed_since_is_refused",
        "test_verify.py::test_55_an_edited_result_and_changed_inputs_are_named",
    ),
    56: ("test_json_file.py::test_other_schema_is_refused",),
    57: (
        "test_report_html.py::test_hostile_names_do_nothing",
        "test_faults_cli.py::test_57_58_hostile_names_stay_text",
    ),
    58: ("test_export_models.py::test_hostile_names_break_no_export",),
    59: ("test_json_file.py::test_parameters_that_are_not_finite_are_refused",),
    60: ("test_faults_cli.py::test_60_no_command_opens_a_connection",),
    61: ("test_turns.py::test_whole_turns_of_redundant_encoders_change_nothing",),
    62: ("test_turns.py::test_a_large_zero_error_and_a_step_are_refused_with_joint_time_and_cause",),
    63: ("test_batched.py::test_bad_matrices_give_nan_and_leave_the_others_as_they_are",),
    64: ("test_faults_log.py::test_64_bit_rot_of_parquet_is_refused_with_its_column",),
    65: ("test_compiled.py::test_65_without_a_writable_cache_kernels_run_and_it_is_said_once",),
    66: (
        "test_output.py::test_a_link_stays_and_its_target_gets_the_result",
        "test_output.py::test_the_current_folder_stays_and_gets_the_result",
    ),
    67: (
        "test_readers.py::test_67_digits_of_other_scripts_are_refused_with_their_place",
        "test_faults_cli.py::test_67_names_do_not_steer_the_terminal",
    ),
    68: ("test_alarms.py::test_a_wrong_gravity_is_called_so_and_nothing_else",),
    69: ("test_survey.py::test_a_log_on_another_branch_is_flagged",),
}
