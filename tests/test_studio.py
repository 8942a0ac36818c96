"""The studio through its HTTP interface: who may use it, what it shows, and that its files repeat it."""

from __future__ import annotations

import contextlib
import html
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynid.common.errors import InputError
from dynid.studio.server import _CONNECTIONS, HOST, Studio
from dynid.studio.session import Session
from tests.test_tasks import contents
from tests.workspace import columns, dynid, make_workspace, write_columns

# As from a terminal: a shell that starts tests in the background has SIGINT and SIGHUP ignored.
_STUDIO = """
import signal, sys
from dynid.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
main(["studio", *sys.argv[1:]])
"""


class Browser:
    """Requests as a page sends them, or as it should not."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        wire = http.client.HTTPConnection(HOST, self.studio.server_port, timeout=60)
        try:
            wire.request(method, path, body, {name.replace("_", "-"): one for name, one in headers.items()})
            answer = wire.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            wire.close()

    def get(self, place: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        return self.request("GET", f"/{self.studio.token}/{place}", **headers)

    def read(self, place: str) -> tuple[int, dict[str, str], bytes]:
        return self.request("GET", f"/{self.studio.reading}/{place}")

    def post(self, action: str, **asked: Any) -> dict[str, Any]:
        """What the server answers to an action of the page."""
        _, _, text = self.request(
            "POST",
            f"/{self.studio.token}/{action}",
            json.dumps(asked).encode(),
            Content_Type="application/json",
        )
        return json.loads(text)

    def finished(self, action: str, **asked: Any) -> dict[str, Any]:
        """The state after a task has ended without an error."""
        said = self.post(action, **asked)
        assert "error" not in said, said["error"]
        job = self.studio.session.job
        assert job is not None
        assert job.wait(300.0)
        assert job.error == ""
        return json.loads(self.get("state")[2])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("studio"))


@pytest.fixture
def browser(files: Path, tmp_path: Path) -> Iterator[Browser]:
    folder = tmp_path / "work"
    shutil.copytree(files, folder)
    studio = Studio(Session(folder))
    threading.Thread(target=studio.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield Browser(studio)
    studio.shutdown()
    studio.close()


def test_only_this_computer_and_only_with_the_token(browser: Browser) -> None:
    studio = browser.studio
    assert studio.server_address[0] == "127.0.0.1"
    assert len(studio.token) >= 43  # 256 bits in base 64
    with contextlib.closing(Studio(Session(studio.session.folder))) as another:
        assert studio.token != another.token
    for path in (
        "/",
        "/state",
        f"/{studio.token[:-1]}/state",
        f"/x{studio.token}/state",
        "/%00/",
        "/%C3%A4/",
    ):
        status, _, text = browser.request("GET", path)
        assert status == 403
        assert studio.token.encode() not in text
    assert browser.request("POST", "/load", b"{}", Content_Type="application/json")[0] == 403
    assert browser.get("state")[0] == 200
    assert browser.get("")[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_another_host_name_is_refused(browser: Browser, host: str) -> None:
    """A name of a foreign page that resolves to this computer gives no access."""
    assert browser.get("state", Host=host.format(port=browser.studio.server_port))[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1"])
def test_another_page_is_refused(browser: Browser, origin: str) -> None:
    assert browser.get("state", Origin=origin)[0] == 403


def test_a_second_origin_is_refused_too(browser: Browser) -> None:
    own = f"http://{HOST}:{browser.studio.server_port}"
    for origins, status in (([own], b"200"), ([own, "http://evil.example"], b"403")):
        lines = [f"GET /{browser.studio.token}/state HTTP/1.1", f"Host: {own.removeprefix('http://')}"]
        lines += [f"Origin: {origin}" for origin in origins]
        with socket.create_connection((HOST, browser.studio.server_port), 60.0) as wire:
            wire.sendall("\r\n".join([*lines, "", ""]).encode())
            assert wire.recv(64).split()[1] == status


def test_idle_connections_do_not_use_up_the_server(browser: Browser) -> None:
    """Those beyond the limit are closed; the page is served again when one of the others has ended."""
    studio = browser.studio
    for _ in range(_CONNECTIONS - 3):  # as if so many were open
        assert studio._free.acquire(timeout=60.0)
    idle = [socket.create_connection((HOST, studio.server_port), 60.0) for _ in range(4)]
    assert idle[3].recv(1) == b""
    for wire in idle:
        wire.close()
    for _ in range(3):  # threads that served the idle ones have ended, or do now
        assert studio._free.acquire(timeout=60.0)
    for _ in range(_CONNECTIONS):
        studio._free.release()
    assert browser.get("state")[0] == 200


def test_a_page_that_left_before_it_was_refused_is_no_error(browser: Browser, monkeypatch, capfd) -> None:
    def left(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("dynid.studio.server._Handler._send", left)
    with contextlib.suppress(http.client.HTTPException, OSError):
        browser.request("GET", "/")
    browser.studio.shutdown()
    assert "Traceback" not in capfd.readouterr().err


def test_forms_and_large_requests_are_refused(browser: Browser) -> None:
    place = f"/{browser.studio.token}/load"
    assert browser.request("POST", place, b"robot=arm.yaml", Content_Type="text/plain")[0] == 415
    huge = {"Content_Length": str(2 << 20), "Content_Type": "application/json"}
    assert browser.request("POST", place, b"", **huge)[0] == 413
    for text in (
        b"[]",
        b"[" * 200_000,
        b"{",
        b'{"robot": 3}',
        b'{"shell": "x"}',
        b'{"robot": NaN}',
        b'{"robot": 1e999}',
    ):
        assert browser.request("POST", place, text, Content_Type="application/json")[0] == 400
    assert browser.request("POST", f"/{browser.studio.token}/close", b"{}")[0] == 404


def test_pages_may_not_be_framed_stored_or_call_out(browser: Browser) -> None:
    _, headers, text = browser.get("")
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"  # the address contains the token
    assert "Access-Control-Allow-Origin" not in headers
    page = html.unescape(text.decode())
    assert "default-src 'none'; script-src 'sha256-" in page
    assert "connect-src 'self'; frame-src 'self'" in page
    assert browser.studio.token.encode() not in text


def test_only_known_files_of_results_are_sent(browser: Browser) -> None:
    assert "error" not in browser.post("open", path="result")
    status, headers, text = browser.read("result/0/report.html")
    assert status == 200
    assert b"<h1" in text
    assert headers["Content-Security-Policy"].startswith("sandbox allow-scripts")
    assert "default-src 'none'" in headers["Content-Security-Policy"]  # whatever the report itself says
    for place in (
        "result/0/../../arm.yaml",
        "result/0/..%2farm.yaml",
        "result/0/experiment.yaml",
        "result/1/report.html",
        "result/-1/report.html",
        "result/0",
        "compared/0/comparison.html",
        "state",
    ):
        assert browser.read(place)[0] == 404, place
    assert browser.get("result/0/report.html")[0] == 404  # results have a token of their own


def test_folders_outside_are_not_listed(browser: Browser, tmp_path: Path) -> None:
    outside = tmp_path / "other"
    outside.mkdir()
    (outside / "secret_name.txt").write_text("x", encoding="utf-8")
    for log in (str(outside), str(outside / "*"), "../other", "../*"):
        said = browser.post("load", robot="arm.yaml", logs=[log])
        assert "inside the folder" in said["error"]
        assert "secret_name" not in said["error"]


@pytest.mark.skipif(os.name == "nt", reason="devices of Unix")
def test_devices_and_pipes_are_not_read(browser: Browser) -> None:
    """Reading them may never end."""
    os.mkfifo(browser.studio.session.folder / "pipe.csv")
    os.mkfifo(browser.studio.session.folder / "pipe.urdf")
    for log in ("/dev/zero", "pipe.csv"):
        assert "a device or a pipe" in browser.post("load", robot="arm.yaml", logs=[log])["error"]
    assert "a device or a pipe" in browser.post("load", robot="pipe.urdf")["error"]
    assert "a device or a pipe" in browser.post("open", path="pipe.csv")["error"]
    assert "unknown user" in browser.post("load", robot="~nobody-has-this-name/arm.urdf")["error"]
    loaded = browser.post("load", robot="arm.yaml", logs=["*.csv"])["loaded"]  # a pattern that finds the pipe
    assert "a device or a pipe" in loaded["refusal"]


@pytest.mark.parametrize("letter", [chr(0xD800), chr(0xDCFC)])  # the second is a byte of a file name
def test_names_that_are_no_text_are_refused(browser: Browser, letter: str) -> None:
    """They would be in no experiment file, and the page could not show its state."""
    before = browser.post("load", robot="arm.yaml", logs=["log.csv"])
    for asked in ({"robot": f"a{letter}.urdf"}, {"robot": "arm.yaml", "logs": [f"a{letter}.csv"]}):
        assert "not UTF-8" in browser.post("load", **asked)["error"]
    assert json.loads(browser.get("state")[2])["revision"] == before["revision"]


def test_files_of_the_folder_are_offered(browser: Browser) -> None:
    folder = browser.studio.session.folder
    shutil.copytree(folder / "result", folder / "results" / "earlier ü")
    (folder / "results" / "no result").mkdir()
    (folder / "notes.txt").write_text("x", encoding="utf-8")
    (folder / ".hidden.csv").write_text("x", encoding="utf-8")
    found = browser.studio.session.state()["offered"]
    assert found["robots"] == ["arm.yaml", "experiment.yaml", "simulation.yaml", "truth.yaml"]
    assert found["logs"] == ["log.csv", "other.parquet"]
    assert found["results"] == ["results/earlier ü"]


def test_settings_do_not_read_the_logs_again(browser: Browser) -> None:
    """Long logs take seconds; only the model matters to how they are read."""
    folder = browser.studio.session.folder
    before = browser.post("load", robot="arm.yaml", logs=["log.csv"])
    (folder / "log.csv").rename(folder / "moved.csv")
    after = browser.post("settings", estimator="ols", auto="off", hold_out=0.2, purpose="simulation")
    assert after["loaded"]["logs"] == before["loaded"]["logs"]
    assert after["read"] == before["read"] < after["revision"]  # the robot is not drawn again
    after = browser.post("settings", model="power")
    assert "no such file" in after["loaded"]["refusal"]
    assert after["read"] == after["revision"]


def test_names_lead_to_no_other_folder(browser: Browser) -> None:
    browser.post("load", robot="arm.yaml", logs=["log.csv"])
    for name in ("../x", "a/b", "/x", "..", ".x", "", "a\\b", "x" * 200, "a\n"):
        assert "not a name for a file" in browser.post("identify", name=name)["error"]
    assert "exists already" in browser.post("identify", name="experiment")["error"]


def test_robot_and_log_are_shown(browser: Browser) -> None:
    loaded = browser.post("load", robot="arm.yaml", logs=["log.csv"], validate=["other.parquet"])["loaded"]
    assert loaded["joints"] == ["joint_1", "joint_2"]
    assert [one["samples"] for one in loaded["logs"]] == [801, 801]  # 4 s at 200 Hz
    assert loaded["refusal"] == ""
    status, _, page = browser.get("view")
    assert status == 200
    assert b'id="robot-data"' in page
    assert b'"bodies":["upper","fore"]' in page  # the payload is not mounted in these logs


def test_a_folder_with_the_name_of_a_built_in_robot_is_no_description(browser: Browser) -> None:
    (browser.studio.session.folder / "scara").mkdir()
    assert browser.post("load", robot="scara", logs=[])["loaded"]["robot"] == "scara"


def test_a_robot_alone_and_an_experiment_file(browser: Browser) -> None:
    for robot in ("ur5", "dualv", "cable4"):  # at the start pose, with loops and cables
        assert browser.post("load", robot=robot)["loaded"]["logs"] == []
        assert b'id="robot-data"' in browser.get("view")[2]
    loaded = browser.post("load", robot="experiment.yaml")["loaded"]
    assert loaded["given"] == ["log.csv"]
    assert "error" not in browser.post("load", robot="experiment.yaml", logs=["log.csv"])  # left in its box
    refused = browser.post("load", robot="experiment.yaml", logs=["other.parquet"])
    assert "names its own logs" in refused["error"]
    assert "there is no file" in browser.post("load", robot="nothing.urdf")["error"]


def test_names_of_a_log_are_text(browser: Browser) -> None:
    """A hostile column name is data of JSON: nothing of it is in a page."""
    folder = browser.studio.session.folder
    cells = columns(folder / "log.csv")
    hostile = "<img src=x onerror=alert(1)>"
    write_columns(folder / "odd.csv", {**cells, hostile: cells["q_1"]})
    loaded = browser.post("load", robot="arm.yaml", logs=["odd.csv"])["loaded"]
    assert hostile in loaded["columns"]["names"]
    assert hostile.encode() not in browser.get("view")[2]
    assert hostile.encode() not in browser.get("")[2]


def test_columns_are_matched_and_changed(browser: Browser) -> None:
    folder = browser.studio.session.folder
    cells = columns(folder / "log.csv")
    degrees = [str(float(x) * 57.29577951308232) for x in cells["q_1"]]
    renamed = {"time": cells["t"], "J1_position [deg]": degrees, "J2_position": cells["q_2"]}
    write_columns(folder / "odd.csv", {**renamed, "a": cells["tau_2"], "b": cells["tau_1"]})
    loaded = browser.post("load", robot="arm.yaml", logs=["odd.csv"])["loaded"]
    assert "effort" in loaded["refusal"]  # a and b are not recognised
    rows = {one["key"]: one for one in loaded["columns"]["rows"]}
    assert rows["q_1"]["column"] == "J1_position [deg]"
    assert rows["q_1"]["unit"] == "deg"
    assert rows["tau_1"]["column"] == ""
    browser.post("map", key="tau_1", column="a")
    loaded = browser.post("map", key="tau_2", column="b", unit="Nm")["loaded"]
    assert loaded["refusal"] == ""
    rows = {one["key"]: one for one in loaded["columns"]["rows"]}
    assert rows["q_1"]["column"] == "J1_position [deg]"  # kept, although other columns were chosen
    loaded = browser.post("map", key="tau_1", column="b")["loaded"]  # the wrong way round: exchanged
    rows = {one["key"]: one for one in loaded["columns"]["rows"]}
    assert (rows["tau_1"]["column"], rows["tau_2"]["column"]) == ("b", "a")
    loaded = browser.post("map", key="tau_1", column="b", delay=0.002)["loaded"]
    row = {one["key"]: one for one in loaded["columns"]["rows"]}["tau_1"]
    asked = {name: row[name] for name in ("key", "column", "scale", "offset", "delay")}
    loaded = browser.post("map", **asked, unit="Nm")["loaded"]  # a change of the unit keeps the delay
    assert {one["key"]: one for one in loaded["columns"]["rows"]}["tau_1"]["delay"] == 0.002
    assert "scale '0,5' is not a number" in browser.post("map", key="tau_1", column="b", scale="0,5")["error"]
    assert "no column" in browser.post("map", key="tau_1", column="c")["error"]
    assert "no signal" in browser.post("map", key="tau_9", column="a")["error"]


def test_numbered_columns_follow_the_first_one(browser: Browser) -> None:
    folder = browser.studio.session.folder
    cells = columns(folder / "log.csv")
    names = {"t": "Zeit", "q_1": "Achse1_x", "q_2": "Achse2_x", "tau_1": "m01", "tau_2": "m02"}
    write_columns(folder / "odd.csv", {name: cells[key] for key, name in names.items()})
    browser.post("load", robot="arm.yaml", logs=["odd.csv"])
    for key in ("t", "q_1", "tau_1"):
        loaded = browser.post("map", key=key, column=names[key])["loaded"]
    assert loaded["refusal"] == ""
    rows = {one["key"]: one for one in loaded["columns"]["rows"]}
    assert {key: row["column"] for key, row in rows.items()} == names
    loaded = browser.post("map", key="q_1", column="Achse1_x", unit="deg")["loaded"]
    units = {one["key"]: one["unit"] for one in loaded["columns"]["rows"]}
    assert units["q_1"] == units["q_2"] == "deg"
    loaded = browser.post("map", key="q_2", column="Achse2_x", unit="rad")["loaded"]  # only this one
    units = {one["key"]: one["unit"] for one in loaded["columns"]["rows"]}
    assert (units["q_1"], units["q_2"]) == ("deg", "rad")


def test_a_chosen_column_has_the_unit_of_its_name(browser: Browser) -> None:
    """Picked or dragged: degrees are not read as radians, and a unit goes with an exchanged column."""
    folder = browser.studio.session.folder
    cells = columns(folder / "log.csv")
    degrees = [str(float(x) * 57.29577951308232) for x in cells["q_1"]]
    table = {"Zeit [ms]": [str(1e3 * float(x)) for x in cells["t"]], "A [deg]": degrees, "B": cells["q_2"]}
    write_columns(folder / "odd.csv", {**table, "m1 [Nm]": cells["tau_1"], "m2 [Nm]": cells["tau_2"]})
    browser.post("load", robot="arm.yaml", logs=["odd.csv"])
    for key, column in (("t", "Zeit [ms]"), ("q_1", "A [deg]"), ("q_2", "B"), ("tau_1", "m1 [Nm]")):
        loaded = browser.post("map", key=key, column=column)["loaded"]
    assert loaded["refusal"] == ""
    assert loaded["logs"][0]["seconds"] == pytest.approx(4.0)  # rounding of milliseconds

    def units() -> dict[str, tuple[str, str]]:
        rows = browser.studio.session.state()["loaded"]["columns"]["rows"]
        return {row["key"]: (row["column"], row["unit"]) for row in rows}

    assert units()["q_1"] == ("A [deg]", "deg")
    assert units()["tau_2"] == ("m2 [Nm]", "Nm")
    browser.post("map", key="q_2", column="A [deg]")
    assert (units()["q_1"], units()["q_2"]) == (("B", ""), ("A [deg]", "deg"))
    browser.post("map", key="q_2", column="A [deg]", unit="")  # SI after all
    assert units()["q_2"] == ("A [deg]", "")
    offered = {
        row["key"]: row["units"] for row in browser.studio.session.state()["loaded"]["columns"]["rows"]
    }
    assert offered["t"] == ["1", "s", "ms", "us", "ns"]  # only those that fit
    assert offered["q_1"] == ["1", "rad", "mrad", "deg", "rev"]
    assert not {"deg", "N", "s"} & set(offered["tau_1"])


def test_a_page_with_an_earlier_state_changes_nothing(browser: Browser) -> None:
    """Two tabs: what one of them asks is about what it shows."""
    seen = browser.post("load", robot="arm.yaml", logs=["log.csv"])["revision"]
    browser.post("load", robot="ur5")
    assert "another tab" in browser.post("identify", name="x-1", revision=seen)["error"]
    assert "another tab" in browser.post("settings", auto="off", revision=seen)["error"]
    state = browser.studio.session.state()
    assert state["loaded"]["robot"] == "ur5"
    assert state["job"] is None
    assert "error" not in browser.post("settings", auto="off", revision=state["revision"])


class Watched:
    """A lock that says when somebody wants it."""

    def __init__(self) -> None:
        self.lock, self.wanted = threading.Lock(), [threading.Event(), threading.Event()]
        self._count = 0

    def __enter__(self) -> None:
        self.wanted[self._count].set()
        self._count += 1
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_requests_of_two_tabs_are_served_one_after_the_other(browser: Browser, monkeypatch) -> None:
    """The second one is judged by what the first one has changed, also if it comes while that is at work."""
    session = browser.studio.session
    seen = browser.post("load", robot="arm.yaml", logs=["log.csv"])["revision"]
    session.requests = watched = Watched()  # type: ignore[assignment]
    change, inside, may_end = session.settings, threading.Event(), threading.Event()
    changed: list[str] = []

    def slowly(estimator: str) -> None:
        changed.append(estimator)
        inside.set()
        assert may_end.wait(60.0)
        change(estimator=estimator)

    monkeypatch.setattr(session, "settings", slowly)
    said: dict[str, dict[str, Any]] = {}

    def tab(estimator: str) -> None:
        said[estimator] = browser.post("settings", estimator=estimator, revision=seen)

    first, second = (threading.Thread(target=tab, args=(name,)) for name in ("ols", "wls"))
    first.start()
    assert inside.wait(60.0)
    second.start()
    assert watched.wanted[1].wait(60.0)  # it has come, and waits
    assert changed == ["ols"]
    may_end.set()
    for thread in (first, second):
        thread.join(60.0)
    assert changed == ["ols"]
    assert "error" not in said["ols"]
    assert "another tab" in said["wls"]["error"]
    assert session.state()["loaded"]["settings"]["estimator"] == "ols"


def test_a_log_that_is_missing_is_named_once(browser: Browser) -> None:
    loaded = browser.post("load", robot="arm.yaml", logs=["gone.csv"])["loaded"]
    assert "no such file" in loaded["refusal"]
    assert loaded["columns"]["names"] == []
    refused = browser.post("identify", name="x-1")["error"]
    assert refused.count("remedy") == 1
    assert not (browser.studio.session.folder / "x-1.yaml").exists()


def test_errors_have_the_words_of_the_command_line(browser: Browser) -> None:
    """As the findings of the doctor; `str` of an error names arguments of Python."""
    folder = browser.studio.session.folder
    cells = columns(folder / "log.csv")
    browser.post("load", robot="arm.yaml", logs=["log.csv"])
    write_columns(folder / "log.csv", {key: cell for key, cell in cells.items() if key != "t"})
    assert "error" not in browser.post("identify", name="run-1")  # reads the log that is there now
    job = browser.studio.session.job
    assert job is not None
    assert job.wait(300.0)
    assert "--column t=NAME" in job.error
    assert "--column t=NAME" in browser.post("load", robot="arm.yaml", logs=["log.csv"])["loaded"]["refusal"]
    assert "--column t=NAME" in browser.post("identify", name="run-1")["error"]


def test_names_with_spaces_and_other_letters(browser: Browser) -> None:
    """The written experiment is the same on the command line."""
    folder = browser.studio.session.folder
    place = folder / "Meß reihe"
    place.mkdir()
    shutil.copy(folder / "arm.yaml", place / "Arm ü.yaml")
    shutil.copy(folder / "log.csv", place / "Lauf 1 é.csv")
    loaded = browser.post("load", robot="Meß reihe/Arm ü.yaml", logs=["Meß reihe/Lauf 1 é.csv"])["loaded"]
    assert loaded["refusal"] == ""
    browser.post("settings", auto="off")
    state = browser.finished("identify", name=loaded["free"])
    words = shlex.split(state["commands"][-1])
    again = [sys.executable, "-m", *words, "--out", "again"]
    subprocess.run(again, cwd=folder, check=True, capture_output=True, timeout=300)
    assert _parameters(folder / "again") == _parameters(folder / "results" / loaded["free"])


def test_settings_are_those_of_experiments(browser: Browser) -> None:
    browser.post("load", robot="arm.yaml", logs=["log.csv"])
    assert browser.post("settings", estimator="ols")["loaded"]["settings"]["estimator"] == "ols"
    assert browser.post("settings", estimator=None)["loaded"]["settings"]["estimator"] is None
    assert "error" in browser.post("settings", estimator="guess")
    assert "no setting" in browser.post("settings", out="elsewhere")["error"]


def test_a_port_in_use_is_refused(browser: Browser, tmp_path: Path) -> None:
    session = Session(tmp_path)
    with pytest.raises(InputError, match="cannot be used"):
        Studio(session, browser.studio.server_port)
    session.close()


def _parameters(folder: Path) -> list[Any]:
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))["parameters"]


def test_the_whole_way_and_the_same_on_the_command_line(browser: Browser) -> None:
    """Load, map, check, identify, compare, export; the written file gives the identical result."""
    folder = browser.studio.session.folder
    cells = columns(folder / "log.csv")
    odd = {"time": cells["t"], "J1_pos": cells["q_1"], "J2_pos": cells["q_2"]}
    write_columns(folder / "odd.csv", {**odd, "a": cells["tau_1"], "b": cells["tau_2"]})
    browser.post("load", robot="arm.yaml", logs=["odd.csv"])
    browser.post("map", key="tau_1", column="a")
    browser.post("map", key="tau_2", column="b")
    browser.post("settings", auto="off", hold_out=0.25)
    assert browser.finished("check")["check"]["refused"] is False
    state = browser.finished("identify", name="run-1")
    (result,) = state["results"]["list"]
    assert result["level"] == "good"
    assert browser.read("result/0/report.html")[0] == 200
    assert state["commands"] == ["dynid identify run-1.yaml"]

    command = [sys.executable, "-m", "dynid", "identify", "run-1.yaml", "--out", "again"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    assert _parameters(folder / "again") == _parameters(folder / "results" / "run-1")
    for name in ("parameters.csv", "signals.csv"):
        assert (folder / "again" / name).read_bytes() == (folder / "results" / "run-1" / name).read_bytes()


def repeated(browser: Browser, name: str) -> str:
    """The last command, after it wrote the same files as the studio once more."""
    folder = browser.studio.session.folder
    words = shlex.split(browser.studio.session.state()["commands"][-1])
    before = contents(folder / "results" / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = dynid(*words[1:], "--out", "again-" + name)
    assert done.exit_code == 0, done.output
    assert before
    assert contents(folder / ("again-" + name)) == before
    return " ".join(words)


def test_a_comparison_is_repeated_by_its_file(browser: Browser) -> None:
    folder = browser.studio.session.folder
    shutil.copytree(folder / "result", folder / "other")
    for path in ("result", "other"):
        browser.post("open", path=path)
    assert "with itself" in browser.post("compare", a=0, b=0)["error"]
    (comparison,) = browser.finished("compare", a=0, b=1)["results"]["compared"]
    assert comparison["name"] == "result_other_compare"
    assert any("parameters" in words for words in comparison["words"])
    assert browser.read("compared/0/comparison.html")[0] == 200
    assert repeated(browser, "result_other_compare") == "dynid compare result_other_compare.yaml"
    again = browser.finished("compare", a=0, b=1)["results"]["compared"][1]
    assert again["name"] == "result_other_compare-2"


def test_an_export_is_repeated_by_its_file(browser: Browser) -> None:
    browser.post("open", path="result")
    exported = browser.finished("export", result=0, formats=["yaml"])["exported"]
    assert [one["failure"] for one in exported["files"]] == [False]
    assert repeated(browser, "result-export") == "dynid export result-export.yaml"
    assert "no format" in browser.post("export", result=0, formats=[])["error"]
    browser.post("export", result=0, formats=["nothing"])
    job = browser.studio.session.job
    assert job is not None
    assert job.wait(300.0)
    assert "unknown format" in job.error
    assert not (browser.studio.session.folder / "result-export-2.yaml").exists()  # it asks for nothing


def test_files_of_the_studio_are_opened_again(browser: Browser) -> None:
    """With the settings of the motion, the comparison and the export, and the results that they name."""
    folder = browser.studio.session.folder
    texts = {
        "swing": "robot: arm.yaml\nexcite: {period: 4, floor: -3, criterion: emin, after: [result]}\n",
        "pair": "compare: {results: [result, other], speeds: [0.5]}\n",
        "out": "robot: arm.yaml\nexport: {result: result, to: [yaml, numpy], payload: merge}\n",
    }
    shutil.copytree(folder / "result", folder / "other")
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    state = browser.post("load", robot="swing.yaml")
    result = str(folder.resolve() / "result")
    assert state["loaded"]["robot"] == "arm.yaml"
    asked = {"period": 4, "floor": -3, "criterion": "emin", "after": [result]}
    assert state["asked"]["excite"] == asked
    state = browser.post("load", robot="pair.yaml")
    assert state["loaded"] is None
    assert state["asked"]["compare"] == {
        "results": [result, str(folder.resolve() / "other")],
        "speeds": [0.5],
    }
    state = browser.post("load", robot="out.yaml")
    assert [one["name"] for one in state["results"]["list"]] == ["result", "other"]
    assert state["asked"]["export"] == {"to": ["yaml", "numpy"], "result": result, "payload": "merge"}
    browser.finished("export", result=0, formats=["yaml"])
    written = (folder / "result-export.yaml").read_text(encoding="utf-8")
    assert "payload: merge" in written  # kept, although the page has no box for it
    assert "robot: arm.yaml" in written  # and instead of the robot of the result
    (folder / "lost.yaml").write_text("compare: [result, gone]\n", encoding="utf-8")
    assert "gone" in browser.post("load", robot="lost.yaml")["error"]


def test_what_an_opened_file_asks_for_follows_the_identification(browser: Browser) -> None:
    folder = browser.studio.session.folder
    text = "robot: arm.yaml\nlogs: [log.csv]\nauto: off\ncompare: [result]\nexport: yaml\n"
    (folder / "whole.yaml").write_text(text, encoding="utf-8")
    browser.post("load", robot="whole.yaml")
    state = browser.finished("identify", name="run-1")
    assert [one["name"] for one in state["results"]["compared"]] == ["run-1_compare"]
    assert [one["format"] for one in state["exported"]["files"]] == ["yaml"]
    assert state["commands"] == ["dynid identify run-1.yaml"]
    before = contents(folder / "results")
    shutil.rmtree(folder / "results")
    command = [sys.executable, "-m", *shlex.split(state["commands"][0])]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    assert contents(folder / "results") == before
    browser.finished("identify", name="run-2", follow=False)
    assert not (folder / "results" / "run-2-export").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_end_of_the_studio_is_the_end_of_its_task(files: Path, tmp_path: Path, end: int) -> None:
    """Also where a terminal is closed: no search goes on, and no temporary folder is left."""
    folder = tmp_path / "work"
    shutil.copytree(files, folder)
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    command = [sys.executable, "-c", _STUDIO, "arm.yaml"]
    with (
        subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as studio,
        contextlib.ExitStack() as at_end,
    ):
        at_end.callback(studio.kill)  # a test that fails does not wait for it
        assert studio.stdout is not None
        host, token = studio.stdout.readline().split("//")[1].split("/")[:2]
        wire = http.client.HTTPConnection(host, timeout=60)
        asked = json.dumps({"name": "run-1", "starts": 1000})  # takes minutes
        wire.request("POST", f"/{token}/excite", asked, {"Content-Type": "application/json"})
        assert json.loads(wire.getresponse().read())["job"]["running"]
        wire.close()
        studio.send_signal(end)
        assert studio.wait(60.0) == 0
    assert not list(folder.rglob("run-1*"))
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.skipif(os.name == "nt", reason="a worker is ended by force there")
@pytest.mark.parametrize("interrupts", [signal.default_int_handler, signal.SIG_IGN])
def test_a_cancelled_task_leaves_nothing(browser: Browser, interrupts) -> None:
    """Also in a studio that a shell started in the background: its tasks begin with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, interrupts)
    try:
        _cancels(browser)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_check_of_settings_that_changed_meanwhile_says_so(browser: Browser) -> None:
    session = browser.studio.session
    browser.post("load", robot="arm.yaml", logs=["log.csv"])
    assert "error" not in browser.post("check")
    browser.post("settings", auto="off")
    assert session.job is not None
    assert session.job.wait(300.0)
    state = json.loads(browser.get("state")[2])
    assert state["check"] is None
    assert "changed meanwhile" in state["job"]["error"]


def test_a_robot_that_is_drawn_slowly_keeps_nobody_waiting(browser: Browser, monkeypatch) -> None:
    drawing, may_end = threading.Event(), threading.Event()

    def slowly(*_: Any) -> str:
        drawing.set()
        assert may_end.wait(60.0)
        return "drawn"

    browser.post("load", robot="arm.yaml", logs=["log.csv"])
    monkeypatch.setattr("dynid.studio.view.view_page", slowly)
    shown: list[bytes] = []
    page = threading.Thread(target=lambda: shown.append(browser.get("view")[2]))
    page.start()
    assert drawing.wait(60.0)
    assert browser.post("settings", auto="off")["loaded"]["settings"]["auto"] == "off"
    may_end.set()
    page.join(60.0)
    assert shown == [b"drawn"]


def test_a_long_log_keeps_nobody_waiting(browser: Browser, monkeypatch) -> None:
    """While it is read, other tabs are answered, and a task can be cancelled."""
    reading, may_end = threading.Event(), threading.Event()

    def slowly(*_: Any) -> list[Any]:
        reading.set()
        assert may_end.wait(60.0)
        return []

    before = browser.post("load", robot="arm.yaml")
    monkeypatch.setattr("dynid.pipeline.read_logs", slowly)
    page = threading.Thread(target=lambda: browser.post("load", robot="arm.yaml", logs=["log.csv"]))
    page.start()
    try:
        assert reading.wait(60.0)
        assert json.loads(browser.get("state")[2])["revision"] == before["revision"]
        assert "error" not in browser.post("cancel")
    finally:
        may_end.set()
        page.join(60.0)
    assert browser.studio.session.state()["loaded"]["given"] == ["log.csv"]


def test_a_page_that_left_before_its_answer_is_no_error(browser: Browser, monkeypatch, capfd) -> None:
    def left(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("dynid.studio.server._Handler._send", left)
    for _ in range(2):  # the second is answered after the first has ended
        with contextlib.suppress(http.client.HTTPException, OSError):
            browser.get("state")
    assert "Traceback" not in capfd.readouterr().err


def _cancels(browser: Browser) -> None:
    folder = browser.studio.session.folder
    browser.post("load", robot="arm.yaml", logs=["log.csv"])
    # A search that takes minutes: it cannot end before it is cancelled.
    assert "error" not in browser.post("excite", name="run-1", starts=1000)
    assert "is running" in browser.post("check")["error"]
    state = browser.post("cancel")
    assert state["job"]["running"] is False
    assert "cancelled" in state["job"]["error"]
    assert state["results"]["motions"] == []
    assert not list(folder.rglob("run-1*"))


def test_a_motion_is_designed_and_the_command_line_repeats_it(browser: Browser) -> None:
    folder = browser.studio.session.folder
    browser.post("load", robot="arm.yaml")
    asked = {"name": "swing", "period": 4, "starts": 1, "floor": -3, "home": ["0", "pi/8"]}
    asked |= {"controllers": ["csv"], "controller_rate": 250}
    state = browser.finished("excite", **asked)
    (motion,) = state["results"]["motions"]
    assert motion["name"] == "swing"
    assert motion["level"] in ("good", "care")
    status, headers, page = browser.read("motion/0/report.html")
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("sandbox allow-scripts")
    assert b'id="robot-data"' in page
    assert b"Can I run it?" in page
    assert "exists already" in browser.post("excite", name="swing")["error"]
    assert "not a name for a file" in browser.post("excite", name="../x")["error"]
    assert "no setting" in browser.post("excite", name="x", prior="/etc/passwd")["error"]

    rows = columns(folder / "results/swing/controller.csv")["t"]
    assert float(rows[1]) == pytest.approx(1 / 250)
    assert repeated(browser, "swing") == "dynid excite swing.yaml"
    assert state["asked"]["excite"]["floor"] == -3  # shown again after the page is loaded again
