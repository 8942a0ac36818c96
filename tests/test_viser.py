"""The robot drawn by Viser: what its recording contains, that nothing listens, and who may see it."""

from __future__ import annotations

import base64
import re
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.experiment.experiment import Experiment
from dynid.kinematics.tree import body_poses, tree_of
from dynid.mechanism.frame import rotation_of
from dynid.mechanism.load import load_robot
from dynid.pipeline import read_logs
from dynid.report.plots import packed, unpacked
from dynid.report.robot_view import drawn_on
from dynid.studio.view import in_webgl, view_page
from tests.mesh_files import box, write
from tests.test_studio import Browser, browser, files

msgspec = pytest.importorskip("msgspec")
zstandard = pytest.importorskip("zstandard")
pytest.importorskip("viser", reason="the extra `view` is not installed")
__all__ = ["browser", "files"]  # fixtures


def messages(page: str) -> list[tuple[float, dict[str, Any]]]:
    """What the recording of a page contains, with times in [s]."""
    found = re.search(r'__VISER_EMBED_DATA__="([^"]+)"', page)
    assert found is not None
    raw = base64.b64decode(found[1])
    inner = zstandard.ZstdDecompressor().decompress(raw[8:], int.from_bytes(raw[:8], "little"))
    size = int.from_bytes(inner[:8], "little")
    return [(t, one) for t, one in msgspec.msgpack.decode(inner[8 : 8 + size])["messages"]]


def at_start(name: str) -> str:
    return view_page(load_robot(name), [], Experiment(robot=name))


def made(page: str) -> dict[str, dict[str, Any]]:
    """Parts of a recording by name."""
    return {one["name"]: one for _, one in messages(page) if "props" in one}


def test_packed_numbers_are_unpacked() -> None:
    x = np.concatenate([np.random.default_rng(1).standard_normal(100), [np.nan]])
    # Half a step of 65534 over the range of these numbers.
    np.testing.assert_allclose(unpacked(packed(x)), x, atol=0.51 * np.ptp(x[:-1]) / 65534)


def test_nothing_listens_and_nothing_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("a socket was opened")

    page = at_start("scara")
    before = set(threading.enumerate())
    for name in ("bind", "listen", "connect"):
        monkeypatch.setattr(socket.socket, name, refused)
    assert "__VISER_EMBED_DATA__" in in_webgl(page)
    assert set(threading.enumerate()) == before


def test_the_same_robot_has_the_same_recording() -> None:
    page = at_start("stewart")
    assert in_webgl(page) == in_webgl(page)


def test_the_page_loads_nothing() -> None:
    page = in_webgl(at_start("ur5"))
    assert not re.search(r"""(?:src|href)\s*=\s*["']?\s*(?:https?:)?//""", page)
    assert not any("Javascript" in one["type"] for _, one in messages(page))


def test_loops_cables_and_capsules_are_there() -> None:
    stewart, cables, arm = (made(in_webgl(at_start(name))) for name in ("stewart", "cable4", "ur5"))
    assert sum("/rod_" in name for name in stewart) == 6  # the travels of its legs
    assert "/robot/cables" in cables
    assert {"cable1", "cable4"} <= {name.rsplit("/", 1)[-1] for name in cables}
    assert any(name.endswith("/elbow_joint") for name in arm)
    assert "/floor" in arm


def test_bodies_are_where_the_log_has_them(browser: Browser) -> None:
    folder = browser.studio.session.folder
    asked = Experiment(robot=str(folder / "arm.yaml"), logs=(str(folder / "log.csv"),))
    robot, (log,) = load_robot(asked.robot), read_logs(asked)
    page = view_page(robot, [log], asked)
    scene, found = drawn_on(page), messages(in_webgl(page))
    assert scene is not None
    (drawn,) = scene["logs"]
    t = unpacked(drawn["t"])
    times = [at for at, _ in found]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(t[-1] - t[0], abs=1e-9)  # sums of the same numbers
    last = {(one["name"], one["type"]): one for at, one in found if at == times[-1] and "name" in one}
    body = next(name for name, _ in last if name.endswith("_fore"))
    place = unpacked(drawn["p"]).reshape(-1, 2, 3)[-1, 1]
    np.testing.assert_allclose(last[body, "SetPositionMessage"]["position"], place, atol=1e-12)  # not changed
    shown = rotation_of(np.array(last[body, "SetOrientationMessage"]["wxyz"]))
    end = np.argmin(np.abs(log.t - t[-1]))
    q = np.array([[log.q[end, k] for k in (0, 1)]])
    # The log is filtered at 20 Hz, its motion is below 1 Hz: 1e-3 rad is far above what the filter changes.
    np.testing.assert_allclose(shown, body_poses(tree_of(robot), q)[0][0, 1], atol=1e-3)


def test_meshes_of_the_description_are_solid(tmp_path: Path) -> None:
    write(tmp_path, "one.stl", box((0.2, 0.1, 0.1)))
    mesh = '<collision><geometry><mesh filename="{}"/></geometry></collision>'
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    joint = '<parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>'
    limit = '<limit lower="-1" upper="1" velocity="1" effort="9"/>'
    (tmp_path / "arm.urdf").write_text(
        f'<robot name="arm"><link name="base"/><link name="arm">{inertial}{mesh.format("one.stl")}'
        f"{mesh.format('gone.stl')}</link>"
        f'<joint name="hinge" type="revolute">{joint}{limit}</joint></robot>',
        encoding="utf-8",
    )
    robot = load_robot(tmp_path / "arm.urdf")
    page = view_page(robot, [], Experiment(robot=str(tmp_path / "arm.urdf")))
    parts = made(in_webgl(page, robot))
    assert [name for name in parts if "/mesh_" in name] == ["/robot/1_arm/mesh_1"]  # the other has no file
    assert not any("/mesh_" in name for name in made(in_webgl(page, load_robot("ur5"))))


def test_up_is_against_gravity(tmp_path: Path) -> None:
    text = "schema: dynid.robot/1\nname: wall\ngravity: [0, -9.81, 0]\njoints:\n"
    text += "  - {name: a, kind: revolute, parent: base, child: one, xyz: [0, 0.4, 0]}\n"
    text += "  - {name: b, kind: revolute, parent: one, child: two, xyz: [0.5, 0, 0]}\n"
    (tmp_path / "wall.yaml").write_text(text, encoding="utf-8")
    found = messages(in_webgl(at_start(str(tmp_path / "wall.yaml"))))
    (up,) = [one["position"] for _, one in found if one["type"] == "SetCameraUpDirectionMessage"]
    assert up == [0.0, 1.0, 0.0]


def test_the_studio_serves_it_in_a_sandbox(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    assert json_state(browser)["viser"] is True
    browser.post("load", robot="arm.yaml", logs=["log.csv"])
    status, headers, page = browser.read("view/1/viser.html")
    assert status == 200
    assert b"__VISER_EMBED_DATA__" in page
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts ")
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy
    assert "connect-src data:" in policy
    assert not re.search(r"https?:|'self'|\*", policy)
    assert browser.get("view/1/viser.html")[0] == 404  # the token of the studio is for the studio
    assert browser.request("GET", "/x/view/1/viser.html")[0] == 403
    for place in ("motion/0/viser.html", "result/0/viser.html", "result/../viser.html", "other/0/viser.html"):
        assert browser.read(place)[0] == 404
    monkeypatch.setattr("dynid.studio.view.has_viser", lambda: False)
    assert json_state(browser)["viser"] is False
    assert browser.read("view/1/viser.html")[0] == 404


def test_residuals_of_a_result_are_colours(browser: Browser) -> None:
    browser.post("open", path="result")
    status, _, page = browser.read("result/0/viser.html")
    assert status == 200
    found = messages(page.decode())
    colours = {tuple(one["updates"]["color"]) for _, one in found if "color" in one.get("updates", {})}
    assert len(colours) > 1
    assert any(
        "largest residual now, noise included" in one["updates"]["text"]
        for _, one in found
        if "text" in one.get("updates", {})
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"effort":0', '"effort":99'),
        ('"bodies":[', '"bodies":["one too many",'),
        ('"t":{', '"t":{"q":"?"}, "u":{'),
    ],
)
def test_a_report_with_a_broken_robot_is_refused(browser: Browser, old: str, new: str) -> None:
    report = browser.studio.session.folder / "result/report.html"
    text = report.read_text(encoding="utf-8")
    assert old in text
    report.write_text(text.replace(old, new, 1), encoding="utf-8")
    browser.post("open", path="result")
    status, _, answer = browser.read("result/0/viser.html")
    assert status == 400
    assert b"cannot be drawn" in answer


def json_state(browser: Browser) -> dict[str, Any]:
    return msgspec.json.decode(browser.get("state")[2])
