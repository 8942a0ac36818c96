"""Campaigns: which runs a file means, results that are not repeated, failures set aside, fleets."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.campaign.campaign import run_campaign
from dynid.campaign.engine import completed
from dynid.campaign.file import read_campaign, runs_of
from dynid.campaign.fleet import ALARM, Sample, fleet_of, number_of
from dynid.campaign.remote import remote_paths, remote_stamp
from dynid.cli import main
from dynid.common.errors import InputError
from tests.workspace import make_workspace

FILE = """schema: dynid.campaign/1
settings: {auto: 'off', filter: {cutoff: 20, decimate: 4}}
runs:
  - {robot: arm.yaml, logs: "fleet/{unit}/{date}.csv"}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two robots with two good logs each, and a third whose log is broken."""
    folder = tmp_path_factory.mktemp("campaign")
    before = Path.cwd()
    os.chdir(folder)
    try:
        make_workspace(folder)
    finally:
        os.chdir(before)
    text = (folder / "log.csv").read_text()
    for name in ("a/2026-01-15", "a/2026-02-15", "b/2026-01-15"):
        path = folder / "fleet" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "fleet" / "c").mkdir()
    (folder / "fleet" / "c" / "2026-01-15.csv").write_text("t,q_1\n0,broken\n")
    (folder / "fleet.yaml").write_text(FILE)
    return folder


def test_fields_of_a_pattern_make_runs(made):
    runs = runs_of(read_campaign(made / "fleet.yaml"), made / "fleet.yaml")
    assert [(run.unit, run.date) for run in runs] == [
        ("a", "2026-01-15"),
        ("a", "2026-02-15"),
        ("b", "2026-01-15"),
        ("c", "2026-01-15"),
    ]
    assert [run.name for run in runs][:2] == ["arm-a-2026-01-15", "arm-a-2026-02-15"]
    assert all(Path(run.robot).is_file() for run in runs)


def test_variants_and_logs_without_fields(made, tmp_path):
    file = made / "variants.yaml"
    file.write_text(
        "runs: [{robot: arm.yaml, logs: ['fleet/a/*.csv', 'fleet/b/*.csv'], name: all}]\n"
        "variants: {plain: {estimator: ols}, weighted: {estimator: wls}}\n"
    )
    runs = runs_of(read_campaign(file), file)
    assert [(run.name, len(run.logs), run.settings["estimator"]) for run in runs] == [
        ("all-plain", 3, "ols"),
        ("all-weighted", 3, "wls"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("runs: []", "no run is given"),
        ("runs: [{robot: arm.yaml}]", "'logs' is missing"),
        ("runs: [{robot: arm.yaml, logs: 'none/*.csv'}]", "no file matches"),
        ("runs: [{robot: arm.yaml, logs: 'fleet/{unit}/*.csv', name: same}]", "two runs are called 'same'"),
        ("runs: [{robot: arm.yaml, log: 'fleet/a/*.csv'}]", "did you mean 'logs'"),
    ],
)
def test_files_that_mean_no_campaign_are_refused(made, text, said):
    file = made / "bad.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        runs_of(read_campaign(file), file)


def test_a_campaign_sets_aside_what_fails_and_goes_on(made, tmp_path):
    asked = []
    done = run_campaign(made / "fleet.yaml", tmp_path / "out", jobs=1, finished=asked.append)
    document = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [one["run"] for one in document["results"]] == [run.name for run in done.runs[:3]]
    assert [Path(one["file"]).parent.name for one in document["set_aside"]] == ["c"]
    assert "broken" in document["set_aside"][0]["reason"]
    for one in document["results"]:
        assert (tmp_path / "out" / one["folder"] / "result.json").is_file()
        assert one["verdict"] in ("good", "care", "bad")
    assert len(asked) == 4
    # Nothing is computed twice; a log that changed is.
    asked.clear()
    journal = tmp_path / "out" / "journal.jsonl"
    journal.write_text(journal.read_text() + '{"cut off')
    run_campaign(made / "fleet.yaml", tmp_path / "out", jobs=1, finished=asked.append)
    assert asked == []
    os.utime(made / "fleet" / "c" / "2026-01-15.csv", (1.0, 1.0))
    again = run_campaign(made / "fleet.yaml", tmp_path / "out", jobs=1, finished=asked.append)
    assert [one.name for one in asked] == ["arm-c-2026-01-15"]
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == document
    assert again.outcomes[:3] == done.outcomes[:3]


def test_the_command_refuses_foreign_folders_and_two_engines(made, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    result = CliRunner().invoke(main, ["campaign", str(made / "fleet.yaml"), "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "notes.txt" in result.output
    both = ["campaign", str(made / "fleet.yaml"), "--jobs", "1", "--cluster", "tcp://x:1"]
    assert CliRunner().invoke(main, both).exit_code == 2


def _square_or_die(task):
    if task == 3:
        os._exit(1)
    return task * task


def test_only_the_run_that_kills_its_process_is_lost():
    found = dict(completed(_square_or_die, [1, 2, 3, 4, 5, 6], jobs=2))
    assert {task: x for task, x in found.items() if task != 3} == {1: 1, 2: 4, 4: 16, 5: 25, 6: 36}
    assert isinstance(found[3], BaseException)


@pytest.fixture
def scheduler():
    """A Dask scheduler with two workers, in threads of this process."""
    distributed = pytest.importorskip("distributed")
    made = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(protocol="tcp://", **made) as cluster:
        yield cluster


def _square(task):
    return task * task


def test_workers_of_a_dask_scheduler_compute_the_runs(scheduler):
    found = dict(completed(_square, [1, 2, 3, 4, 5], cluster=scheduler.scheduler_address))
    assert found == {1: 1, 2: 4, 3: 9, 4: 16, 5: 25}


def test_a_scheduler_that_is_lost_is_named_and_its_address_refused(scheduler):
    address = scheduler.scheduler_address
    results = completed(_square_slowly, [0.05, *(1.0 + 0.1 * k for k in range(9))], cluster=address)
    assert next(results) == (0.05, pytest.approx(0.0025))
    scheduler.close()
    with pytest.raises(InputError, match=r"connection to the Dask scheduler .* was lost"):
        list(results)


def _square_slowly(task):
    time.sleep(task)
    return task * task


def test_a_log_in_an_object_store_is_read_again_when_it_has_changed(tmp_path):
    place = (tmp_path / "log.csv").as_uri()
    (tmp_path / "log.csv").write_text("t,q_1\n")
    assert remote_paths(f"{tmp_path.as_uri()}/*.csv") == [place]
    before = remote_stamp(place)
    assert remote_stamp(place) == before
    (tmp_path / "log.csv").write_text("t,q_1\n0,0\n")
    assert remote_stamp(place) != before
    with pytest.raises(InputError, match="cannot be read"):
        remote_stamp((tmp_path / "none.csv").as_uri())


def _fleet(seed, growth, months=6, robots=50):
    """Friction of a fleet with 1 % scatter from log to log; the first five robots change in one joint."""
    rng = np.random.default_rng(seed)
    for robot in range(robots):
        base = 10.0 * (1.0 + 0.1 * rng.standard_normal(4))
        for month in range(months):
            for joint in range(4):
                sigma = 0.012 * base[joint]
                grown = 1.0 + growth(month) * (robot < 5 and joint == 2)
                value = base[joint] * (grown + 0.01 * rng.standard_normal()) + sigma * rng.standard_normal()
                yield Sample(
                    f"r{robot}", f"2026-{month + 1:02d}", "", f"Fv_{joint}", "N m s/rad", value, sigma
                )


def test_robots_whose_friction_grows_are_found_without_false_alarms():
    expected = {(f"r{robot}", "Fv_2") for robot in range(5)}
    for seed in (1, 2):  # 3 % a month, found by the sixth month
        found = fleet_of(_fleet(seed, lambda month: 0.03 * month)).changes
        assert {(one.robot, one.parameter) for one in found} == expected
    steps = fleet_of(_fleet(3, lambda month: 0.15 * (month >= 3))).changes
    assert {(one.robot, one.parameter) for one in steps} == expected


def test_clean_fleets_raise_alarms_as_rarely_as_promised():
    alarms = sum(bool(fleet_of(_fleet(seed, lambda _: 0.0, robots=8)).changes) for seed in range(20, 40))
    # 20 fleets at 5 %: more than 4 would happen by chance in 0.3 % of cases.
    assert alarms <= 4
    assert ALARM == 0.05


def test_the_mean_of_all_robots_has_the_scatter_between_them():
    pooled = fleet_of(_fleet(4, lambda _: 0.0, robots=60)).pooled
    assert [one.robots for one in pooled] == [60] * 4
    for one in pooled:  # 10 +- 1: the deviation of a deviation of 60 robots is 9 %
        assert abs(one.mean - 10.0) < 4.0 * one.sigma
        assert one.between == pytest.approx(1.0, rel=0.4)


def test_dates_of_many_forms_are_ordered():
    assert number_of("2026-02-01") - number_of("2026-01") == pytest.approx(31.0)
    assert number_of("17") == 17.0
    assert number_of("spring") is None
