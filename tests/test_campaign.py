"""Campaigns: which runs a file means, results that are not repeated, failures set aside, fleets."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from dynid import identify
from dynid.base.base import BaseSet
from dynid.base.rank import independent_columns
from dynid.campaign import joined as joining
from dynid.campaign import tree as tree_module
from dynid.campaign.campaign import run_campaign
from dynid.campaign.dates import number_of
from dynid.campaign.factors import FACTORS, Leaf, cut, leaf_file, merged
from dynid.campaign.file import Run, read_campaign, runs_of
from dynid.campaign.fleet import ALARM, fleet_of
from dynid.campaign.joined import Joined, Merge
from dynid.campaign.journal import Entry, write_entry
from dynid.campaign.shared_settings import favoured_settings, shared_settings
from dynid.campaign.stores import remote_paths, remote_stamp
from dynid.campaign.tree import tree
from dynid.campaign.trend import Sample
from dynid.campaign.work import Outcome
from dynid.choice.choose import choose
from dynid.cli import main
from dynid.common.engine import Died, completed
from dynid.common.errors import InputError
from dynid.excitation.optimal.multistart import Journal, run_starts
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import factor_rows
from dynid.projection.projection import Group, System
from dynid.report.json_file import read_result
from dynid.statistics.clusters import clusters_of, duration, lengths
from dynid.statistics.uncertainty import UncertaintySettings
from tests.workspace import dynid, make_workspace

FILE = """schema: dynid.campaign/1
settings: {auto: 'off', filter: {cutoff: 20, decimate: 4}}
runs:
  - {robot: arm.yaml, logs: "fleet/{unit}/{date}.csv"}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two robots with two good logs each, and a third whose log is broken."""
    folder = make_workspace(tmp_path_factory.mktemp("campaign"))
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
        (
            "runs: []\ncolumns: {t: time}",
            r"line 2.* key of experiments\n.*write  settings: {columns: \.\.\.}",
        ),
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
    assert str(made) not in (tmp_path / "out" / "summary.json").read_text()  # no home directory of a user
    for one in document["results"]:
        assert (tmp_path / "out" / one["folder"] / "result.json").is_file()
        assert one["verdict"] in ("good", "care", "bad")
    assert len(asked) == 4
    page = (tmp_path / "out" / "campaign.html").read_text()
    assert "What changes over time?" not in page
    # Parameters are drawn over their dates also where nothing changes.
    assert page.count('<figure class="chart"') == len(done.fleet.histories) > 5
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


SETTINGS = "{auto: 'off', filter: {cutoff: 20, decimate: 4}, mask: {speed: 0.05, rest: 0.01}}"


@pytest.fixture(scope="module")
def year(made):
    """Five logs of one robot and two of another, with different motions."""
    settings = ("--truth", str(made / "truth.yaml"), "--config", str(made / "simulation.yaml"))
    for k, name in enumerate(("a/1", "a/2", "a/3", "a/4", "a/5", "b/1", "b/2")):
        target = made / "year" / f"{name}.csv"
        target.parent.mkdir(parents=True, exist_ok=True)
        dynid("simulate", str(made / "arm.yaml"), *settings, "--seed", str(k), "--out", str(target))
    (made / "year" / "a" / "6.csv").write_text("t,q_1\n0,broken\n")
    return made


@pytest.fixture(scope="module")
def joined(year):
    """All logs of each robot in one estimate: the file, and a function that copies the results."""
    file = year / "year.yaml"
    file.write_text(
        f"joined: true\nsettings: {SETTINGS}\n"
        "runs: [{robot: arm.yaml, logs: 'year/{unit}/{date}.csv'}]\n"
    )
    done = run_campaign(file, year / "out", jobs=1)
    return file, done, lambda folder: shutil.copytree(year / "out", folder / "out")


def test_all_logs_of_a_robot_give_the_answer_of_one_pass(year, joined, tmp_path):
    file, done, copied = joined
    copied(tmp_path)
    made_now = []
    first, second = json.loads((tmp_path / "out" / "summary.json").read_text())["joined"]
    assert [run[-1] for run in first["runs"]] == ["1", "2", "3", "4", "5"]
    assert "broken" in first["left_out"][0]["reason"]
    assert (second["unit"], len(second["runs"]), second["left_out"]) == ("b", 2, [])
    merged = read_result(tmp_path / "out" / first["folder"])
    logs = [str(year / "year" / "a" / f"{k}.csv") for k in range(1, 6)]
    once = identify(year / "arm.yaml", logs, **yaml.safe_load(SETTINGS))
    assert [one.name for one in merged.parameters] == [one.name for one in once.parameters]
    assert [one.grouping for one in merged.parameters] == [one.grouping for one in once.parameters]
    for one, other in zip(merged.parameters, once.parameters, strict=True):
        # The same rows in another order: rounding times the condition of the unit columns, below 100.
        assert one.value == pytest.approx(other.value, rel=1e-10, abs=1e-10 * other.sigma)
        assert one.sigma == pytest.approx(other.sigma, rel=1e-9)  # the same blocks of time
    assert merged.fit.residual_percent == pytest.approx(once.fit.residual_percent, rel=1e-10)
    table = (tmp_path / "out" / first["folder"] / "runs.csv").read_text().splitlines()
    assert len(table) == 6
    assert [row["use"] for row in merged.provenance["inputs"]].count("identify") == 5
    # What is there is neither identified nor joined again; a log that arrives makes one run.
    before = (tmp_path / "out" / second["folder"] / "result.json").stat().st_mtime_ns
    os.utime(year / "year" / "a" / "5.csv", (1.0, 1.0))
    again = run_campaign(file, tmp_path / "out", jobs=1, finished=made_now.append)
    assert [one.name[-1] for one in made_now] == ["5"]
    assert (tmp_path / "out" / second["folder"] / "result.json").stat().st_mtime_ns == before
    assert again.joined == done.joined


_merge = joining._made


def _counted(monkeypatch, folder, stop=None):
    """Digests of what is merged from now on, until `stop` of them are; the result of robot a is gone."""
    (folder / "joined" / "a" / "runs.csv").unlink(missing_ok=True)
    digests = []

    def made(where, task):
        if len(digests) == stop:
            raise KeyboardInterrupt
        digests.append(task.node.digest)
        return _merge(where, task)

    monkeypatch.setattr(joining, "_made", made)
    return digests


def _inputs(result):
    return {(one["use"], one["sha256"]) for one in result.provenance["inputs"]}


def test_a_tree_that_is_interrupted_goes_on_and_gives_the_same(joined, tmp_path, monkeypatch):
    file, done, copied = joined
    out = copied(tmp_path)
    expected = read_result(out / "joined" / "a")
    run_campaign(file, out, jobs=1)
    table = (out / "joined" / "a" / "runs.csv").read_text()
    monkeypatch.setattr(tree_module, "_WIDTH", 2)
    first = _counted(monkeypatch, out, stop=2)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(file, out, jobs=1)
    rest = _counted(monkeypatch, out)
    assert run_campaign(file, out, jobs=1).joined == done.joined
    assert (len(first), len(rest)) == (2, 4)  # three pairs of five runs, two of these, the root
    assert not set(first) & set(rest)
    assert run_campaign(file, out, jobs=1).joined == done.joined
    assert len(rest) == 4
    found = read_result(out / "joined" / "a")
    inputs = [
        {(one["use"], one["sha256"]) for one in result.provenance["inputs"]} for result in (found, expected)
    ]
    assert inputs[0] == inputs[1]
    assert (out / "joined" / "a" / "runs.csv").read_text() == table
    for one, other in zip(found.parameters, expected.parameters, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-10, abs=1e-10 * other.sigma)
        assert one.sigma == pytest.approx(other.sigma, rel=1e-9)
    # Workers that do not see the folder leave it to processes of this machine.
    asked = []

    def completed(work, left, jobs, cluster):
        asked.append(cluster)
        while tasks := left():
            yield tasks[0], None if cluster else work(tasks[0])

    monkeypatch.setattr(joining, "completed", completed)
    shutil.rmtree(out / "factors" / "merged")
    again = _counted(monkeypatch, out)
    assert run_campaign(file, out, cluster="tcp://x:1").joined == done.joined
    assert sorted(again) == sorted(first + rest)
    assert asked == ["tcp://x:1", None]
    # Factors that are not those that a run has kept are named.
    leaf = next((out / "factors").glob("*-b-1.npz"))
    leaf.write_bytes(leaf.read_bytes()[:-100])
    shutil.rmtree(out / "joined" / "b")
    assert "factors are missing or damaged" in run_campaign(file, out, jobs=1).joined[1].reason


def test_runs_whose_factors_do_not_serve_are_left_out_with_the_reason(year, tmp_path):
    file = year / "robust.yaml"
    file.write_text(
        f"joined: true\nsettings: {SETTINGS[:-1]}, estimator: robust}}\n"
        "runs: [{robot: arm.yaml, logs: 'year/b/{date}.csv', unit: b}]\n"
    )
    (joined,) = run_campaign(file, tmp_path / "out", jobs=1).joined
    assert joined.reason == "0 of its runs can be used"
    assert all("'robust' needs more than factors" in reason for reason in joined.left_out.values())


def test_all_runs_of_a_robot_have_the_drive_terms_that_most_logs_favour(tmp_path, monkeypatch):
    votes = {"a1": {"drive": ["Fv"]}, "a2": {"drive": ["Fv", "Fr"]}, "a3": {"drive": ["Fv"]}, "b1": None}
    asked = []

    def completed(work, left, jobs, cluster):
        assert work is favoured_settings
        while runs := left():
            asked.append(runs[0].name)
            yield runs[0], votes.get(runs[0].name, {"drive": ["Fv", "Fr"]})

    monkeypatch.setattr("dynid.campaign.shared_settings.completed", completed)

    def run(name, **settings):
        return Run(name, name[0], name[1:], f"/{name[0]}.urdf", (f"/logs/{name}.csv",), settings)

    runs = [run("a1"), run("a2"), run("a3"), run("b1"), run("b2", auto="off"), run("b3", auto="off")]
    done, (shared,) = shared_settings(runs, tmp_path, None, None)
    assert [one.settings.get("drive") for one in done] == [["Fv"]] * 3 + [None] * 3
    assert asked == ["a1", "a2", "a3"]  # one run of its kind, or nothing left open: no choice to share
    assert (shared.favoured_by, shared.asked) == (2, 3)
    assert "terms of all runs of a: Fv (favoured by 2 of 3 logs)" in shared.words
    # Logs that arrive have no vote: results that are there would have to be made again.
    later, _ = shared_settings([*runs, run("a4"), run("a5")], tmp_path, None, None)
    assert later[-1].settings == {"drive": ["Fv"]}
    assert len(asked) == 3
    (tmp_path / "settings.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match="cannot be read"):
        shared_settings(runs, tmp_path, None, None)
    (tmp_path / "settings.json").unlink()
    # Of a thousand logs five are asked; merged factors need `wls`, unless the user gives another.
    many = [run(f"c{k}") for k in range(1000)] + [run("d1", estimator="ols")]
    done, _ = shared_settings([replace(one, together=2) for one in many], tmp_path, None, None)
    assert asked[3:] == ["c0", "c200", "c400", "c600", "c800"]
    assert done[5].settings == {"estimator": "wls", "drive": ["Fv", "Fr"]}
    assert done[-1].settings == {"estimator": "ols"}


def test_a_log_favours_the_terms_that_an_identification_would_choose(made, tmp_path, monkeypatch):
    monkeypatch.setattr("dynid.pipeline.choose", choose)  # as for users
    log = str(made / "log.csv")
    run = Run("a", "a", "", str(made / "arm.yaml"), (log,), {})
    once = identify(made / "arm.yaml", log)
    assert favoured_settings(run)["drive"] == once.provenance["options"]["drive"]
    broken = str(made / "fleet" / "c" / "2026-01-15.csv")
    assert favoured_settings(Run("c", "c", "", str(made / "arm.yaml"), (broken,), {})) is None
    # A half whose efforts are 30 N m off, or a log too short to choose: no vote.
    head, *rows = (made / "log.csv").read_text().splitlines()
    shifted = [
        ",".join([*cells[:-1], f"{float(cells[-1]) + 30.0}"])
        for cells in (row.split(",") for row in rows[400:])
    ]
    for name, kept in (("half", [*rows[:400], *shifted]), ("short", rows[:150])):
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *kept, ""]))
        assert favoured_settings(replace(run, logs=(str(tmp_path / f"{name}.csv"),))) is None


@pytest.mark.parametrize("count", [3, 100, 1100])  # one task, parts of 32 logs, two logs a block
def test_a_tree_of_many_logs_keeps_its_size_and_its_answer(count, tmp_path, monkeypatch):
    monkeypatch.setattr(tree_module, "_WIDTH", 32)
    rng = np.random.default_rng(3)
    n = 41 * count
    W, Y = rng.normal(size=(n, 3)), rng.normal(size=n)
    (tmp_path / FACTORS).mkdir()
    outcomes = []
    for k, rows in enumerate(np.split(np.arange(n), count)):
        blocks = tuple(factor_rows(W[part], Y[part]) for part in np.array_split(rows, 8))
        group = Group("j", "log", "N m", np.arange(3), blocks, times=np.arange(8), seconds=0.5)
        outcomes.append(_kept(tmp_path, f"r{k}", Leaf(_plain_base(3), (group,), "wls", {})))
    root, there = tree(outcomes, UncertaintySettings()), set()
    while (ready := root.ready(there))[0].digest != root.digest:
        for part in ready:
            assert len(part.children) <= 32
            assert joining._made(str(tmp_path), Merge(Joined("a", "a", ""), part)) == {}
            there.add(part.digest)
    members = ((child.run, joining._read(tmp_path / FACTORS, child)) for child in root.children)
    system = merged(members, root.seconds, root.join).system
    if count <= 1024:  # as one pass: a block of each log at least
        assert len(clusters_of(system, np.zeros(3), np.ones(len(system.groups)), 1.0)) >= count
    assert sum(len(group.blocks) for group in system.groups) <= max(8 * 256, count)
    assert sum(group.n_rows for group in system.groups) == n
    assert duration(system) == pytest.approx(4.0 * count)
    expected = np.column_stack([W, Y]).T @ np.column_stack([W, Y])
    R = system.factor().R
    assert np.max(np.abs(R.T @ R - expected)) < 1e-9  # sums of some 10 000 products of size one
    # A log that arrives changes the parts on its way to the root only.
    more = _kept(tmp_path, "more", Leaf(_plain_base(3), (group,), "wls", {}))
    assert len(tree([*outcomes, more], UncertaintySettings()).ready(there)) == 1


def test_blocks_that_a_run_keeps_are_cut_into_the_clusters_of_one_pass():
    """A log with two runs of different length and gaps in one of its groups, and a log of one run."""
    rng = np.random.default_rng(4)
    groups = []
    for log, counts in (("a", (67, 21)), ("b", (83,))):
        places = [(run, 100 * run + k) for run, count in enumerate(counts) for k in range(count)]
        for name, every in (("j1", 1), ("j2", 3)):
            runs, times = np.array([place for place in places if place[1] % every < 2]).T
            blocks = tuple(factor_rows(rng.normal(size=(7, 3)), rng.normal(size=7)) for _ in times)
            more = {"times": times, "runs": runs, "seconds": 0.25}
            groups.append(Group(name, log, "N m", np.arange(3), blocks, **more))
    parameters = _plain_base(3).standard
    chi, weights = np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, 1.0, 2.0])
    for seconds in (1.0, 2.5, 30.0):
        kept = cut(groups, seconds)
        fewer = 1 if seconds == 1.0 else 0.7  # half as many blocks would not be worth a joint
        assert len(kept[0].blocks) <= fewer * len(groups[0].blocks)
        whole, less = System(parameters, tuple(groups)), System(parameters, kept)
        assert duration(less) == pytest.approx(duration(whole))
        one, other = (clusters_of(system, chi, weights, seconds) for system in (whole, less))
        assert one.rows.tolist() == other.rows.tolist()
        assert one.runs.tolist() == other.runs.tolist()
        (M, s), (M_kept, s_kept) = (
            (x.root @ x.M @ x.root.T, x.s @ x.root.T)
            for x in (one, other)  # rows of R have either sign
        )
        np.testing.assert_allclose(s_kept, s, atol=1e-12)
        np.testing.assert_allclose(M_kept, M, atol=1e-12)


def _kept(folder, name, leaf):
    """The outcome of a run whose factors are in the folder."""
    content = leaf_file(leaf)
    (folder / FACTORS / f"{name}.npz").write_bytes(content)
    return Outcome(name, "good", factors=hashlib.sha256(content).hexdigest(), lengths=lengths(leaf.system))


def _plain_base(p):
    standard = tuple(Parameter(f"x{i}", "M", "body", "kg", "inertial") for i in range(p))
    rank = independent_columns(np.eye(p), range(p))
    return BaseSet(standard, tuple(range(p)), np.eye(p), np.zeros(p), np.eye(p), (), (), {}, rank)


def test_the_command_refuses_foreign_folders_and_two_engines(made, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    result = CliRunner().invoke(main, ["campaign", str(made / "fleet.yaml"), "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "notes.txt" in result.output
    both = ["campaign", str(made / "fleet.yaml"), "--jobs", "1", "--cluster", "tcp://x:1"]
    assert CliRunner().invoke(main, both).exit_code == 2


def test_a_command_in_a_pipe_says_what_it_does_and_why_a_run_failed(made, tmp_path):
    result = dynid("campaign", str(made / "fleet.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1")
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert len([line for line in lines if line.startswith("  arm-a-2026-01-15: ")]) == 1, result.stderr
    aside = next(line for line in result.output.splitlines() if line.startswith("  set aside: arm-c"))
    assert str(made / "fleet" / "c" / "2026-01-15.csv") in aside  # as seen from here
    assert "remedy: " in aside


def test_an_interrupted_command_says_what_is_kept(made, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    options = ("campaign", str(made / "fleet.yaml"), "--jobs", "1")
    with monkeypatch.context() as patched:
        patched.setattr("dynid.campaign.campaign.run_campaign", stopped)
        result = dynid(*options, "--out", str(tmp_path / "none"))
        assert result.exit_code == 130
        assert "nothing is kept" in result.output
        folder = tmp_path / "one"
        folder.mkdir()
        write_entry(folder, Entry("digest", Outcome("a", verdict="good")))
        assert "1 finished run is kept" in dynid(*options, "--out", str(folder)).output


def test_logs_that_arrive_in_a_watched_folder_are_added(made, tmp_path, monkeypatch):
    arrived = tmp_path / "today"
    first = arrived / "a" / "1.csv"
    first.parent.mkdir(parents=True)
    shutil.copy(made / "log.csv", first)
    file = made / "watch.yaml"
    file.write_text(FILE.replace("fleet/", ""))

    slept, written = [], []
    page = tmp_path / "out" / "campaign.html"

    def arrive(seconds):
        assert seconds == 0.5
        slept.append(seconds)
        written.append(page.stat().st_mtime_ns)
        if len(slept) == 2:
            shutil.copy(made / "log.csv", arrived / "a" / "2.csv")

    monkeypatch.setattr("dynid.commands.campaign.time", SimpleNamespace(sleep=arrive))
    options = ("--watch", str(arrived), "--every", "0.5", "--looks", "4", "--jobs", "1")
    result = dynid("campaign", str(file), "--out", str(tmp_path / "out"), *options)
    assert result.exit_code == 0
    assert "1 runs, 1 of them new" in result.output
    assert "2 runs, 1 of them new" in result.output
    assert result.output.count("written:") == 2
    # Looks that find nothing new write nothing.
    assert written[0] == written[1] < written[2] == page.stat().st_mtime_ns


def _all(work, tasks, **where):
    """Results of all tasks."""
    found = {}
    for task, result in completed(work, lambda: [one for one in tasks if one not in found], **where):
        found[task] = result
    return found


def _square_or_die(task):
    if task == 3:
        os._exit(1)
    return task * task


def test_only_the_run_that_kills_its_process_is_lost():
    found = _all(_square_or_die, [1, 2, 3, 4, 5, 6], jobs=2)
    assert {task: x for task, x in found.items() if task != 3} == {1: 1, 2: 4, 4: 16, 5: 25, 6: 36}
    assert isinstance(found[3], Died)


_CAMPAIGN = """
import sys
from dynid.common.engine import completed
from tests.test_campaign import _say_and_wait
if __name__ == "__main__":
    list(completed(_say_and_wait, lambda: [sys.argv[1]], jobs=1))
"""


def _say_and_wait(file):
    Path(file).write_text(str(os.getpid()))
    time.sleep(60.0)


def test_workers_end_with_a_process_that_is_killed(tmp_path):
    (tmp_path / "campaign.py").write_text(_CAMPAIGN)
    file = tmp_path / "worker.txt"
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    command = [sys.executable, str(tmp_path / "campaign.py"), str(file)]
    client = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
    try:
        assert _within(60.0, lambda: file.is_file() and file.read_text() != "")
    finally:
        client.kill()
        client.wait()
    worker = Path("/proc") / file.read_text()
    assert _within(30.0, lambda: not worker.exists() or ") Z " in (worker / "stat").read_text())


def _within(seconds, condition):
    """Whether a condition becomes true in that time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.fixture
def scheduler():
    """A Dask scheduler with two workers, in threads of this process."""
    distributed = pytest.importorskip("distributed")
    made = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(protocol="tcp://", **made) as cluster:
        yield cluster


def _square(task):
    return task * task


def test_workers_of_a_dask_scheduler_compute_the_runs(scheduler):
    found = _all(_square, [1, 2, 3, 4, 5], cluster=scheduler.scheduler_address)
    assert found == {1: 1, 2: 4, 3: 9, 4: 16, 5: 25}


class _Squares:
    """A starter: what `excite` and `rehearse` build once in every worker."""

    def run(self, number, times=1):
        return _Square(number, times * number * number)


@dataclass(frozen=True)
class _Square:
    number: int
    value: int


def test_starts_and_draws_run_on_a_dask_scheduler_in_rounds(scheduler):
    def then(done):  # a second round, for the largest of the first
        return [(3, 10)] if done[3].value == 9 else []

    book = Journal(None, {})
    where = {"cluster": scheduler.scheduler_address, "then": then}
    found = run_starts(_Squares, (), 4, book, **where)
    assert [one.value for one in found] == [0, 1, 4, 90]


def test_a_scheduler_that_is_lost_is_named_and_its_address_refused(scheduler):
    address = scheduler.scheduler_address
    tasks = [0.05, *(1.0 + 0.1 * k for k in range(9))]
    results = completed(_square_slowly, lambda: tasks, cluster=address)
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


def test_a_fleet_with_few_dates_gives_no_all_clear():
    """Five days of three robots prove large changes only: the largest is named, with what it would need."""
    found = fleet_of(_fleet(4, lambda month: 0.03 * month, months=5, robots=3))
    assert not found.changes
    assert re.search(
        r"the largest, a \w+ of Fv_2 of r[0-2] by \+\d+\.\d %, has \d+\.\d+ sigma; .* need about \d+",
        found.unproved,
    )
    many = fleet_of(_fleet(1, lambda month: 0.03 * month))
    assert many.unproved == ""
    few = fleet_of(_fleet(4, lambda month: 0.25 * month, months=3, robots=3))
    assert few.unproved == "changes over time are tested from 5 days of a robot on"
    assert not fleet_of(_fleet(4, lambda _: 0.0, months=1, robots=3)).unproved


def test_clean_fleets_raise_alarms_as_rarely_as_promised():
    alarms = sum(bool(fleet_of(_fleet(seed, lambda _: 0.0, robots=8)).changes) for seed in range(20, 40))
    # 20 fleets at 5 %: more than 4 would happen by chance in 0.3 % of cases.
    assert alarms <= 4
    assert ALARM == 0.05


def _alone(seed, scatter, blocks, growth=0.0, months=10):
    """One robot with six parameters; sigma of a log has as many degrees of freedom as it has blocks."""
    rng = np.random.default_rng(seed)
    for k in range(6):
        for month in range(months):
            value = 1.0 + growth * month * (k == 0) + scatter * rng.standard_normal()
            sigma = 0.01 * np.sqrt(rng.chisquare(blocks) / blocks)
            value += 0.01 * rng.standard_normal()
            yield Sample("r", f"2026-{month + 1:02d}", "", f"Fv_{k}", "N m s/rad", value, float(sigma))


@pytest.mark.parametrize(("scatter", "blocks"), [(0.03, 1000), (0.01, 6)])
def test_a_robot_alone_raises_no_more_alarms_than_promised(scatter, blocks):
    # The scatter from log to log is known from its own ten dates only, sigma of short logs badly.
    alarms = sum(bool(fleet_of(_alone(seed, scatter, blocks)).changes) for seed in range(40))
    assert alarms <= 6  # 40 at 5 %: more would happen by chance in 0.3 % of cases
    found = [fleet_of(_alone(seed, 0.01, blocks, growth=0.03)).changes for seed in range(5)]
    assert [[(one.parameter, one.cause) for one in changes] for changes in found] == [
        [("Fv_0", "friction")]
    ] * 5


@pytest.mark.parametrize(
    ("parameters", "cause"),
    [
        (("Fv_j1", "Fs+_j1", "Fr_j2"), "friction"),
        (("MX_arm_R", "M_payload", "XX/M_arm"), "load"),
        (("Fv_j1", "MX_arm_R"), "gain"),
        (("Fs_j1", "Ia_j1"), "gain"),
        (("Off_j1",), "offset"),
        (("Fv_j1", "Off_j1"), ""),
        (("Kp_j1",), ""),
    ],
)
def test_changes_of_a_robot_point_to_their_common_cause(parameters, cause):
    samples = [
        Sample(robot, f"{month}", "", name, "", 1.0 + 0.05 * month * (robot == "r0"), 0.001)
        for robot in ("r0", "r1", "r2")
        for name in parameters
        for month in range(10)
    ]
    found = fleet_of(samples).changes
    assert {one.parameter for one in found} == set(parameters)
    assert {one.cause for one in found} == {cause}


@pytest.mark.parametrize(("dates", "size"), [(8, 30.0), (12, 1000.0), (6, 100.0)])
def test_a_step_of_a_single_robot_is_a_step_at_its_date(dates, size):
    rng = np.random.default_rng(5)
    values = 1e4 + size * (np.arange(dates) >= dates // 2) + rng.normal(size=dates)
    samples = [Sample("r", f"{k}", "", "Fv_1", "", float(y), 1.0) for k, y in enumerate(values)]
    (found,) = fleet_of(samples).changes
    assert (found.kind, found.since) == ("step", f"{dates // 2}")
    # Two means of at least three values: their difference has a deviation below 0.82, five of them are 4.1.
    assert found.change == pytest.approx(size, abs=4.1)


def test_wear_and_a_changed_tool_are_no_change_of_a_gain():
    grows = {"Fv_1": lambda month: 0.05 * month, "M_tool": lambda month: 0.3 * (month >= 5)}
    rng = np.random.default_rng(6)
    samples = [
        Sample(
            robot, f"{month}", "", name, "", 1.0 + size(month) * (robot == "r0") + 1e-3 * rng.normal(), 0.001
        )
        for robot in ("r0", "r1", "r2")
        for name, size in grows.items()
        for month in range(10)
    ]
    found = fleet_of(samples).changes
    assert {(one.parameter, one.kind, one.cause) for one in found} == {
        ("Fv_1", "drift", ""),
        ("M_tool", "step", ""),
    }


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
