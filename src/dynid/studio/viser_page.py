"""The robot of a page in WebGL: a recording that the client of Viser plays, in one page of its own.

The server of Viser would open a web socket to every user of the computer. Here nothing listens: a recorder
takes the place of a connection and keeps what would be sent.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import viser
from viser.infra import Message, WebsockMessageHandler

from dynid.studio.viser_robot import Meshes, Motion, Robot

_FRAMES = 1200  # of all motions together: a page of one to two megabytes


class _Recorder(WebsockMessageHandler):
    """A connection to nobody: what is sent is only recorded."""

    def get_message_buffer(self) -> Any:
        return self

    def push(self, message: Message) -> None:
        """Take a message; it is recorded already."""


def recording(scene: Mapping[str, Any], meshes: Meshes) -> str:
    """A page that plays the motions of a scene, one after the other, each at its own time.

    Args:
        scene: What a page with the other drawing draws (`drawn_on`).
        meshes: Body (or `base`) -> its collision meshes.
    """
    recorder = _Recorder()
    kept = recorder.get_message_serializer(lambda message: message.include_in_scene_serialization)
    owner = SimpleNamespace(
        _websock_connection=recorder,
        client_id="",  # everyone
        _viser_server=SimpleNamespace(_scene_lifecycle_lock=threading.RLock()),
    )
    place = viser.SceneApi(cast(Any, owner), cast(Any, None), cast(Any, None))
    motions = [Motion(str(one["name"]), one, len(scene["bodies"])) for one in scene["logs"]]
    robot = Robot(place, scene, motions, meshes)
    camera = viser.InitialCameraConfig(recorder.queue_message)
    camera.fov, camera.look_at, camera.position, camera.up = robot.camera()
    step = max(1, -(-sum(motion.n for motion in motions) // _FRAMES))
    for motion in motions:
        for frame, seconds in motion.frames(step):
            robot.show(motion, frame)
            kept.insert_sleep(seconds)
    return kept.as_html()
