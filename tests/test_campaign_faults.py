"""Campaigns when something goes wrong: mistakes of the file, kills, full disks, journals, other workers."""

import errno
import json
import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import fsspec
import numpy as np
import pytest
from click.testing import CliRunner

from dynid.campaign import campaign as module
from dynid.campaign.campaign import Campaign, run_campaign
from dynid.campaign.dates import number_of
from dynid.campaign.file import Run, read_campaign, runs_of
from dynid.campaign.fleet import fleet_of
from dynid.campaign.joined import _usable
from dynid.campaign.journal import digest, read_journal
from dynid.campaign.page import campaign_html
from dynid.campaign.patterns import paths_of
from dynid.campaign.shared_settings import favoured_settings
from dynid.campaign.stores import StoreError
from dynid.campaign.work import Made, Outcome, failed, make
from dynid.cli import main
from dynid.common import engine
from dynid.common.engine import Died, _check_versions
from dynid.common.errors import InputError
from dynid.common.versions import version_of
from dynid.excitation import excite as excitation
from dynid.report.json_file import read_result
from dynid.report.output import write_files
from dynid.report.seal import verify
from dynid.report.sections.provenance import command_line
from dynid.report.terminal import StageClock
from tests.workspace import ARM, dynid, make_workspace

SETTINGS = "settings: {auto: off}\n"
RUNS = "runs: [{robot: arm.yaml, logs: 'data/{unit}/{date}.csv'}]\n"


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """Three runs of two robots, which are not identified: the results are made up."""
    (tmp_path / "arm.yaml").write_text(ARM)
    for name in ("a/2026-01", "a/2026-02", "b/2026-01"):
        (tmp_path / "data" / f"{name}.csv").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / f"{name}.csv").write_text("t,q_1\n")
    (tmp_path / "fleet.yaml").write_text(SETTINGS + RUNS)
    monkeypatch.setattr(module, "completed", _made_up(lambda _: None))
    return tmp_path


def _made_up(error_of):
    """As `completed`: an outcome of each run, or what `error_of` says."""

    def completed(work, left, jobs, cluster):
        while runs := left():
            run = runs[0]
            outcome = Outcome(run.name, "good", "", parameters=(("Fv_1", "N m", 1.25, 0.5),), version="1.0")
            yield run, error_of(run) or Made(outcome, {"result.json": "{}"})

    return completed


def _names(folder, **options):
    """Names of the runs that a campaign makes now, and what it says."""
    new = []
    done = run_campaign(folder / "fleet.yaml", folder / "out", finished=new.append, **options)
    return [outcome.name for outcome in new], done


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("settings: {estmator: wls}\n" + RUNS, r"settings\.estmator: .*did you mean 'estimator'"),
        ("settings: {filter: {cutof: 3}}\n" + RUNS, r"yaml, settings\.filter\.cutof: "),
        (RUNS.replace("}]", ", settings: {estmator: ols}}]"), r"runs\[0\]\.settings\.estmator: "),
        ("variants: {a: {estimator: foo}}\n" + RUNS, r"variants\.a\.estimator: 'foo' is not known"),
        ("runs: [{robot: arm.yaml, logs: []}]", r"runs\[0\]\.logs: no log is given"),
        ("settings: {drive: {jjoint: [Fv]}}\n" + RUNS, "'jjoint' is no joint"),
        ("settings: {robot: ur5}\n" + RUNS, "'robot' is no setting of a campaign"),
        (RUNS.replace("arm.yaml", "none.yaml"), "there is no file"),
        (
            RUNS.replace("{date}", "{run}").replace(" logs", " date: spring, logs"),
            "'spring' .* is not a date",
        ),
        (
            "runs: [{robot: arm.yaml, logs: 'data/a/{date}.csv', unit: a, name: '{date}'},"
            " {robot: arm.yaml, logs: 'data/b/*.csv', unit: a}]",
            "dates of 'a' cannot be compared: '2026-01' and ''",
        ),
        ("runs: table.csv", r"table\.csv: cannot be read: No such file.*\n.*check the path"),
    ],
)
def test_a_mistake_of_the_file_is_refused_before_anything_is_written(fleet, text, said):
    (fleet / "fleet.yaml").write_text(text)
    with pytest.raises(InputError, match=said):
        run_campaign(fleet / "fleet.yaml", fleet / "out")
    assert not (fleet / "out").exists()


def test_a_table_lists_runs(fleet):
    table = fleet / "table.csv"
    table.write_text("robot,logs,unit,date\narm.yaml,data/a/2026-01.csv,r1,2026-01\nur5,data/b/*.csv,r2,\n")
    (fleet / "fleet.yaml").write_text(SETTINGS + "runs: table.csv")
    runs = runs_of(read_campaign(fleet / "fleet.yaml"), fleet / "fleet.yaml")
    assert [(run.name, run.unit, run.date) for run in runs] == [
        ("arm-r1-2026-01", "r1", "2026-01"),
        ("ur5-r2", "r2", ""),
    ]
    for text, said in (
        ("robot,log\na,b\n", "table.csv, line 1: .* no column 'log'; did you mean 'logs'"),
        ("robot;logs\na;b\n", "no column 'robot;logs'.*\n.*commas"),
        ("robot,logs,settings\na,b,c\n", "no column 'settings'"),
        ("robot,logs\na\n", "cells"),
    ):
        table.write_text(text)
        with pytest.raises(InputError, match=said):
            read_campaign(fleet / "fleet.yaml")


def test_patterns_have_sets_of_characters_and_folders_may_contain_brackets(fleet):
    folder = fleet / "data" / "[x]"
    folder.mkdir()
    (folder / "log1.csv").write_text("")
    for pattern in ("data/{unit}/log[0-9].csv", "data/[x]/{run}.csv"):
        (fleet / "fleet.yaml").write_text(f"runs: [{{robot: arm.yaml, logs: '{pattern}'}}]")
        if pattern.startswith("data/{unit}"):
            (run,) = runs_of(read_campaign(fleet / "fleet.yaml"), fleet / "fleet.yaml")
            assert (run.unit, run.logs) == ("[x]", (str(folder / "log1.csv"),))
        else:  # a set of one character, as in every pattern: 'data/x/...'
            with pytest.raises(InputError, match="no file matches"):
                runs_of(read_campaign(fleet / "fleet.yaml"), fleet / "fleet.yaml")


def test_files_of_settings_are_beside_the_campaign_and_count_as_inputs(fleet, monkeypatch):
    other = fleet / "other.csv"
    other.write_text("t,q_1\n")
    (fleet / "fleet.yaml").write_text("settings: {auto: off, validate: [other.csv]}\n" + RUNS)
    monkeypatch.chdir("/")
    run = runs_of(read_campaign(fleet / "fleet.yaml"), fleet / "fleet.yaml")[0]
    assert run.files == (str(fleet / "arm.yaml"), str(other))
    assert run.settings["validate"][0]["file"] == str(other)
    assert len(_names(fleet)[0]) == 3
    assert _names(fleet)[0] == []
    other.write_text("t,q_1,q_2\n")
    assert len(_names(fleet)[0]) == 3


def test_what_a_kill_leaves_behind_is_cleared(fleet):
    _names(fleet)
    out = fleet / "out"
    (out / ".summary.json.new-").write_text("{")
    (out / "runs" / ".arm-a-2026-01.new-ab12").mkdir()
    (out / "runs" / "arm-a-2026-02").rename(out / "runs" / ".arm-a-2026-02.old-ab12")
    assert _names(fleet)[0] == []
    assert sorted(os.listdir(out / "runs")) == ["arm-a-2026-01", "arm-a-2026-02", "arm-b-2026-01"]
    assert not (out / ".summary.json.new-").exists()


def test_damaged_lines_of_the_journal_are_named_and_their_runs_repeated(fleet):
    _names(fleet)
    journal = fleet / "out" / "journal.jsonl"
    first, second, third = journal.read_text().splitlines()
    journal.write_text("\n".join([first.replace("1.25", "1.35"), second[:40], third]) + "\n{")
    names, done = _names(fleet)
    assert names == ["arm-a-2026-01", "arm-a-2026-02"]
    assert done.notes == (
        "lines of journal.jsonl that are damaged or of an older version: 3; their runs were repeated",
    )
    assert "1.35" not in (fleet / "out" / "parameters.csv").read_text()
    assert _names(fleet)[1].notes == ()


def test_runs_that_failed_for_reasons_outside_their_files_are_tried_again(fleet, monkeypatch):
    errors = {
        "arm-a-2026-01": InputError("broken"),
        "arm-a-2026-02": Died(),
        "arm-b-2026-01": StoreError("no answer"),
    }
    monkeypatch.setattr(module, "completed", _made_up(lambda run: errors.get(run.name)))
    first = _names(fleet)[1]
    assert len(first.set_aside) == 3
    # A watched folder is looked at every few seconds: what failed is not repeated at each look.
    assert _names(fleet, before=replace(first, inputs=()))[0] == []
    errors.clear()
    names, done = _names(fleet)
    assert names == ["arm-a-2026-02", "arm-b-2026-01"]
    assert [one.reason for one in done.set_aside] == ["broken"]
    assert "internal error, KeyError" in failed(done.runs[0], KeyError("x")).reason


def test_a_full_disk_is_named_and_what_is_finished_is_kept(fleet, monkeypatch):
    real, left = module.write_files, [1]

    def write_files(path, files):
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        left.pop()
        real(path, files)

    monkeypatch.setattr(module, "write_files", write_files)
    with pytest.raises(InputError, match=r"No space left on device\n.*finished runs are kept"):
        _names(fleet)
    monkeypatch.setattr(module, "write_files", real)
    assert _names(fleet)[0] == ["arm-a-2026-02", "arm-b-2026-01"]


def test_results_of_several_versions_are_named(fleet):
    _names(fleet)
    journal = fleet / "out" / "journal.jsonl"
    journal.write_text(journal.read_text().splitlines()[0] + "\n")

    def other(run):
        return Made(Outcome(run.name, "good", "", version="2.0"), {"result.json": "{}"})

    module.completed = _made_up(other)  # the fixture puts the real one back
    (note,) = _names(fleet)[1].notes
    assert "1.0 (1 runs), 2.0 (2 runs)" in note


def test_robots_of_several_kinds_are_not_compared(fleet, monkeypatch):
    (fleet / "fleet.yaml").write_text(
        SETTINGS + "runs: [{robot: arm.yaml, logs: 'data/a/{date}.csv', unit: '1'},"
        " {robot: ur5, logs: 'data/b/*.csv', unit: '1'}]"
    )

    def of_kind(run):
        more = (("MX_2", "kg m", 2.0, 0.1),) if run.robot == "ur5" else ()
        parameters = (("Fv_1", "N m", 1.0, 0.1), *more)
        return Made(Outcome(run.name, "good", "", parameters=parameters), {"result.json": "{}"})

    monkeypatch.setattr(module, "completed", _made_up(of_kind))
    fleet_found = _names(fleet)[1].fleet
    assert {one.description for one in fleet_found.histories} == {"arm", "ur5"}
    assert fleet_found.pooled == ()  # one robot of each kind


def test_one_odd_run_does_not_decide_which_runs_are_merged():
    outcomes = [Outcome(f"r{k}", "good", kind=kind) for k, kind in enumerate("xyyzy")]
    used, left_out = _usable([*outcomes, Outcome("bad", "bad", kind="y"), Outcome("no", reason="broken")])
    assert [outcome.name for outcome in used] == ["r1", "r2", "r4"]
    assert (
        left_out["r0"] == left_out["r3"] == "parameters, known values or estimator are not those of most runs"
    )
    assert (left_out["bad"], left_out["no"]) == ("its verdict is bad", "broken")


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="time zones of Unix")
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_dates_do_not_depend_on_the_clock_of_the_machine(monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        day = number_of("2026-03-15")
        assert day == 20527.0
        for same in ("20260315", "2026_03_15", "2026-03-15T00:00:00+00:00", "2026-03-15_00-00-00"):
            assert number_of(same) == day
        assert number_of("2026-03-15T12:00") == day + 0.5
        assert number_of("2026-03-15_06-00") == day + 0.25
        assert number_of("202603") == number_of("2026-03") == day - 14.0
        assert number_of("2026-02-30") is None
        assert number_of("nan") is None
        assert number_of("12345678") == 12345678.0
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
def test_pipes_are_set_aside_instead_of_waited_for(fleet):
    pipe = fleet / "data" / "a" / "2026-03.csv"
    os.mkfifo(pipe)
    made = make(Run("x", "a", "", str(fleet / "arm.yaml"), (str(pipe),), {}), str(fleet))
    assert "neither a file nor a folder" in made.outcome.reason
    assert favoured_settings(Run("x", "a", "", str(fleet / "arm.yaml"), (str(pipe),), {})) is None


def test_a_folder_with_a_dangling_link_is_left_to_its_reader(fleet):
    (fleet / "bag").mkdir()
    (fleet / "bag" / "x.db3").symlink_to(fleet / "nowhere")
    run = Run("x", "a", "", str(fleet / "arm.yaml"), (str(fleet / "bag"),), {})
    assert digest(run)
    assert make(run, str(fleet)).outcome.reason


def test_a_journal_line_with_nan_is_damaged(tmp_path):
    line = '{"digest": NaN, "outcome": {"name": "x", "parameters": []}, "seal": ""}'
    (tmp_path / "journal.jsonl").write_text(f"{line}\n")
    assert read_journal(tmp_path) == ({}, 1)


def test_patterns_match_folders_but_not_the_folder_that_they_start_in(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "data" / name).mkdir(parents=True)
    inside = [str(tmp_path / "data" / name) for name in ("a", "b")]
    assert paths_of("data/**", tmp_path) == inside
    assert paths_of("data/*/", tmp_path) == inside


def test_days_of_a_month_begin_with_one():
    assert number_of("2026-03-00") is None
    assert number_of("20260301") == number_of("2026-03-01")


class _Client:
    """Scheduler and workers with these versions of dynid."""

    def __init__(self, *versions):
        self.versions = versions

    def run_on_scheduler(self, function):
        return function()

    def run(self, function):
        if "none" in self.versions:
            raise ModuleNotFoundError("No module named 'dynid'")
        return dict(enumerate(self.versions))


def test_workers_without_dynid_or_with_another_version_are_refused():
    _check_versions(_Client(version_of(), version_of()), "tcp://x:1")
    with pytest.raises(InputError, match=r"cannot run dynid: No module named 'dynid'\n.*install dynid"):
        _check_versions(_Client("none"), "tcp://x:1")
    with pytest.raises(InputError, match=r"have dynid 9\.9"):
        _check_versions(_Client(version_of(), "9.9"), "tcp://x:1")


def test_an_empty_watched_folder_is_waited_for(fleet):
    (fleet / "today").mkdir()
    command = ["campaign", str(fleet / "fleet.yaml"), "--out", str(fleet / "out"), "--looks", "1"]
    result = CliRunner().invoke(main, [*command, "--watch", str(fleet / "today")])
    assert "no log matches the patterns" in result.output
    assert json.loads((fleet / "out" / "summary.json").read_text())["results"] == []
    refused = CliRunner().invoke(main, [*command, "--every", "-1"])
    assert (refused.exit_code, "above 0" in refused.output) == (2, True)


def test_workers_of_an_excitation_get_the_full_path_of_the_robot(fleet, monkeypatch):
    class Asked(Exception):
        pass

    def ask(robot, *_, **__):
        raise Asked(robot)

    monkeypatch.setattr(excitation, "excite_series", ask)
    monkeypatch.chdir(fleet)
    with pytest.raises(Asked, match=re.escape(str(Path("arm.yaml").resolve()))):
        excitation.excite("arm.yaml", cluster="tcp://x:1")


def test_a_log_in_a_store_has_its_address_and_date_in_results_and_refusals(tmp_path):
    workspace = make_workspace(tmp_path)
    log, broken = workspace / "log.csv", workspace / "broken.csv"
    os.utime(log, (1.7e9, 1.7e9))
    broken.write_text("t,q_1\n0,broken\n")
    settings = {"auto": "off", "filter": {"cutoff": 20, "decimate": 4}}

    def made(address):
        run = Run("x", "a", "", str(workspace / "arm.yaml"), (address,), settings)
        return make(run, str(workspace / "out"))

    first, second = made(log.as_uri()), made(log.as_uri())
    assert first.files == second.files  # no path of a copy, and the time of change of the log itself
    write_files(workspace / "out", first.files)
    entry = read_result(workspace / "out").provenance["inputs"][-1]
    assert (entry["file"], entry["date"]) == (log.as_uri(), "2023-11-14T22:13:20Z")
    checked = verify(workspace / "out")
    assert checked.intact
    assert log.as_uri() in checked.unchecked[0]
    assert broken.as_uri() in made(broken.as_uri()).outcome.reason
    # An object has no time of change but the one that its store knows.
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/log.csv", log.read_bytes())
    store.store["/bucket/log.csv"].modified = datetime(2024, 2, 29, 12, tzinfo=UTC)
    (entry,) = json.loads(made("memory://bucket/log.csv").files["result.json"])["provenance"]["inputs"][-1:]
    assert (entry["file"], entry["date"]) == ("memory://bucket/log.csv", "2024-02-29T12:00:00Z")
    store.rm("/bucket", recursive=True)
    assert "memory://bucket/log.csv" in made("memory://bucket/log.csv").outcome.reason


def test_the_time_left_of_each_stage_follows_from_its_own_pace():
    clock = StageClock()
    assert clock.left(0.0, 100.0) == ""  # nothing is known yet
    assert clock.left(0.25, 110.0) == "about 30 s left"
    assert clock.left(0.5, 500.0) == "about 7 min left"
    assert clock.left(0.1, 1000.0) == ""  # a new stage
    assert clock.left(0.2, 2000.0) == "about 2.2 h left"


def test_one_misnamed_file_is_set_aside_and_the_others_are_not(fleet):
    """In a campaign and in a watched folder, where such a file can arrive at any time."""
    odd = fleet / "data" / "a" / "copy of march.csv"
    odd.write_bytes((fleet / "data" / "a" / "2026-01.csv").read_bytes())
    for options in ({}, {"logs_in": fleet}):
        new, done = _names(fleet, **options)
        (aside,) = done.set_aside
        assert "'copy of march' of ../data/a/copy of march.csv is not a date" in aside.reason
        assert str(fleet) not in (fleet / "out" / "summary.json").read_text()  # no home directory of a user
        assert sum(outcome.verdict != "" for outcome in done.outcomes) == len(done.outcomes) - 1 > 1
    assert new == []  # nothing is repeated
    # A number that is read before the dates does not set them aside, where it may arrive at any time.
    odd.rename(odd.with_name("1.csv"))
    (aside,) = _names(fleet, logs_in=fleet)[1].set_aside
    assert "dates of 'a' cannot be compared" in aside.reason


def test_a_second_log_of_one_name_is_set_aside_without_paths_of_this_machine(fleet):
    runs = "{robot: arm.yaml, logs: 'data/%s/{date}.csv', name: '{date}'}"
    (fleet / "fleet.yaml").write_text(f"{SETTINGS}runs: [{runs % 'a'}, {runs % 'b'}]")
    (aside,) = _names(fleet, logs_in=fleet)[1].set_aside
    assert aside.reason.startswith("../data/b/2026-01.csv: another run is called '2026-01'; give `name:`")
    assert str(fleet) not in (fleet / "out" / "summary.json").read_text()


def test_a_watch_says_what_was_set_aside_or_deleted_also_without_a_new_result(fleet, monkeypatch):
    odd, looks = fleet / "data" / "a" / "monday.csv", []

    def between(_):
        looks.append(0)
        if len(looks) == 1:
            odd.write_text("t,q_1\n")
        elif len(looks) == 2:
            (fleet / "data" / "b" / "2026-01.csv").unlink()

    monkeypatch.setattr("dynid.commands.campaign.time", SimpleNamespace(sleep=between))
    options = ("--out", str(fleet / "out"), "--watch", str(fleet), "--looks", "4")
    said = dynid("campaign", str(fleet / "fleet.yaml"), *options).output.split("written:")
    assert len(said) == 4  # of four looks the last finds nothing
    assert "4 runs, 0 of them new" in said[1]
    assert "'monday'" in said[1]
    assert "logs were not found now: 1" in said[2]


def test_results_stay_in_the_fleet_when_their_logs_are_archived(fleet):
    """Until their folder is deleted, or the file asks for other robots or settings."""
    _, whole = _names(fleet)
    archived = fleet / "data" / "a" / "2026-01.csv"
    content = archived.read_bytes()
    archived.unlink()
    new, done = _names(fleet)
    assert new == []
    assert {run.name for run in done.runs} == {run.name for run in whole.runs}
    assert "logs were not found now: 1;" in done.notes[-1]
    assert archived.name in (fleet / "out" / "summary.json").read_text()
    # A folder of the logs of one day, watched into the same results.
    today = fleet / "today" / "data" / "a"
    today.mkdir(parents=True)
    (today / "2026-07.csv").write_bytes(content)
    new, done = _names(fleet, logs_in=fleet / "today")
    assert len(new) == 1
    assert len(done.runs) == len(whole.runs) + 1
    assert len(done.fleet.histories) > 0
    # Patterns that exclude a log which is there exclude its result; other settings exclude all.
    (fleet / "fleet.yaml").write_text(SETTINGS + RUNS.replace("data/{unit}", "data/b"))
    _, narrowed = _names(fleet)
    assert "arm-a-2026-02" not in {run.name for run in narrowed.runs}
    (fleet / "fleet.yaml").write_text("settings: {auto: off, estimator: ols}\n" + RUNS)
    assert len(_names(fleet)[1].runs) == len(whole.runs) - 1


def test_robots_of_two_descriptions_are_two_robots_also_with_one_name(fleet):
    (fleet / "arm2.yaml").write_text((fleet / "arm.yaml").read_text())
    runs = "{robot: %s, logs: 'data/%s/{date}.csv', unit: m7, name: '%s-{date}'}"
    first, second = runs % ("arm.yaml", "a", "x"), runs % ("arm2.yaml", "b", "y")
    (fleet / "fleet.yaml").write_text(f"settings: {{auto: off}}\nruns: [{first}, {second}]")
    _, done = _names(fleet)
    assert {run.unit for run in done.runs} == {"arm m7", "arm2 m7"}


def test_names_of_robots_do_not_depend_on_the_logs_that_are_there(fleet):
    (fleet / "arm2.yaml").write_text((fleet / "arm.yaml").read_text())
    entries = [
        "{robot: arm.yaml, logs: 'data/{unit}/{date}.csv'}",
        "{robot: arm2.yaml, logs: 'more/{unit}/{date}.csv'}",
        "{robot: arm2.yaml, logs: 'last/{date}.csv'}",
        "{robot: arm2.yaml, logs: 'own/{date}.csv', unit: m7}",
    ]
    (fleet / "fleet.yaml").write_text(f"settings: {{auto: off}}\nruns: [{', '.join(entries)}]")
    _, done = _names(fleet, logs_in=fleet)
    assert {run.unit for run in done.runs} == {"arm a", "arm b"}
    for name in ("more/a/2026-01", "last/2026-01", "own/2026-01"):
        (fleet / f"{name}.csv").parent.mkdir(parents=True)
        (fleet / f"{name}.csv").write_text("t,q_1\n")
    (fleet / "data" / "b" / "2026-01.csv").unlink()  # results that are kept have the same names
    new, done = _names(fleet, logs_in=fleet)
    assert len(new) == 3
    # `m7` is written in the file, for one description only; `arm2` is the name of the description.
    assert {run.unit for run in done.runs} == {"arm a", "arm b", "arm2 a", "arm2", "m7"}


def test_kept_results_are_left_out_when_their_description_is_another(fleet):
    """They cannot be computed again, and belong to another robot. The old content brings them back."""
    robot, content = fleet / "arm.yaml", (fleet / "arm.yaml").read_text()
    _names(fleet)
    (fleet / "data" / "a" / "2026-01.csv").unlink()
    os.utime(robot, (1.0, 1.0))  # touched, not changed: what is there is made again, and the other kept
    new, done = _names(fleet)
    assert (len(new), len(done.runs)) == (2, 3)
    robot.write_text(content + "description: another\n")
    new, done = _names(fleet)
    assert (len(new), len(done.runs)) == (2, 2)
    assert done.notes[-1].startswith("earlier results that are left out: 1;")
    # A look of `--watch` that finds no other log notices the description too.
    robot.write_text(content)
    assert len(_names(fleet, before=done)[1].runs) == 3


def test_kept_results_are_left_out_when_other_drive_terms_are_chosen(fleet, monkeypatch):
    (fleet / "fleet.yaml").write_text(RUNS)
    for terms, kept in ((["Fv"], 1), (["Fv"], 1), (["Fv", "Fs"], 0)):
        votes = _made_up(lambda _, terms=terms: {"drive": terms})
        monkeypatch.setattr("dynid.campaign.shared_settings.completed", votes)
        _, done = _names(fleet)
        (fleet / "data" / "a" / "2026-01.csv").unlink(missing_ok=True)
        (fleet / "out" / "settings.json").unlink()  # asked again
        _, done = _names(fleet)
        assert len(done.runs) == 2 + kept


@pytest.mark.parametrize("start", ["", "store"])
def test_the_pattern_and_not_the_store_decides_which_results_stay(fleet, start):
    """A log that is archived stays, one that no pattern matches does not, on a disk and in a store alike."""
    before = f"{fleet.as_uri()}/" if start else ""
    text = RUNS.replace("data/", f"{before}data/")
    (fleet / "fleet.yaml").write_text(SETTINGS + text)
    whole = {run.name for run in _names(fleet)[1].runs}
    shutil.rmtree(fleet / "data" / "a")
    assert {run.name for run in _names(fleet)[1].runs} == whole
    (fleet / "fleet.yaml").write_text(SETTINGS + text.replace("{unit}", "a"))  # all of its logs are gone
    new, done = _names(fleet)
    assert (new, {run.name for run in done.runs}) == ([], whole - {"arm-b-2026-01"})
    (fleet / "fleet.yaml").write_text(SETTINGS + text.replace("{unit}", "c"))
    with pytest.raises(InputError, match="no file matches"):
        _names(fleet)


def test_a_journal_whose_last_line_lost_its_end_can_be_continued(fleet):
    _names(fleet)
    journal = fleet / "out" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-1])
    log = next((fleet / "data" / "a").glob("*.csv"))
    os.utime(log, (1.0, 1.0))
    new, done = _names(fleet)
    assert len(new) == 1
    assert len(journal.read_text().splitlines()) == len(done.runs) + 1


def test_addresses_that_are_no_paths_are_refused(fleet):
    with pytest.raises(InputError, match="s3:/bucket/out: this is an address"):
        run_campaign(fleet / "fleet.yaml", "s3://bucket/out")
    result = CliRunner().invoke(main, ["identify", "--robot", "ur5", "--log", "s3://bucket/x.csv"])
    assert result.exit_code == 2
    assert "this is an address" in result.output
    (fleet / "fleet.yaml").write_text(SETTINGS + RUNS.replace("data/", f"{fleet}/data/"))
    with pytest.raises(InputError, match="no pattern starts in the folder that is watched"):
        _names(fleet, logs_in=fleet)


def test_pages_of_a_campaign_do_not_name_the_command_that_computed_them():
    """Otherwise `--jobs 1`, `--jobs 2` and a cluster would give different files."""
    assert command_line(["/usr/bin/dynid", "campaign", "fleet.yaml", "--jobs", "2"]) == ""
    assert command_line(["/usr/bin/dynid", "demo", "ur5"]) == "dynid demo ur5"


def test_waiting_without_workers_is_said(caplog):
    """Tasks stay with the scheduler until a worker comes."""
    counts = iter([1, 0, 0, 0, 0, 0])
    with ThreadPoolExecutor(1) as pool, patch.object(engine, "_SILENCE", 0.01):
        results = list(engine._round(pool, lambda: next(counts, 1), time.sleep, [0.1], "tcp://here:1"))
    assert results == [(0.1, None)]
    assert [record.getMessage() for record in caplog.records] == [
        "dynid: the scheduler at 'tcp://here:1' has no workers left: waiting for new ones"
    ]


def _page(count, dates, growth=0.0):
    """The page of so many robots, each with a log that failed and good ones of one scatter; some change."""
    rng = np.random.default_rng(0)
    pairs = [
        (Run(f"u{k}-{date}", f"u{k}", date, "arm", ()), made)
        for k in range(count)
        for date, made in (
            ("2025-12", Outcome(f"u{k}-2025-12", reason="no column")),
            *(
                (date, Outcome(f"u{k}-{date}", "good", "", parameters=(("MX_a", "kg m", float(x), 1e-3),)))
                for date, x in zip(
                    dates,
                    2.0 + 1e-3 * rng.standard_normal(len(dates)) + growth * (k < 201) * np.arange(len(dates)),
                    strict=True,
                )
            ),
        )
    ]
    runs, outcomes = zip(*pairs, strict=True)
    fleet = fleet_of(module._samples(runs, outcomes))
    return campaign_html(Campaign("fleet", Path("/out"), runs, outcomes, fleet))


def test_a_page_of_a_thousand_robots_stays_small_and_counts_what_it_hides():
    page = _page(1000, ("2026-01",))
    assert len(page) < 300_000
    assert "<summary>Set aside (200 of 1000)</summary>" in page
    assert "<summary>All runs, worst first (200 of 1000)</summary>" in page
    page = _page(450, [f"2026-0{month}" for month in range(1, 7)], growth=0.1)
    assert "<summary>Robots that change, the most certain first (200 of 201)</summary>" in page


def test_ends_of_a_drawn_range_are_told_apart():
    ends = re.search(r"<small>([\d.]+) to ([\d.]+) kg m; ", _page(4, ("2026-01", "2026-02", "2026-03")))
    assert 1.99 < float(ends[1]) < float(ends[2]) < 2.01
