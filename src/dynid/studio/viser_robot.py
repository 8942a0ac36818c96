"""Parts of the robot in a scene of Viser, which move and change their colour along a motion.

Colours and what they mean are those of the drawing in reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.frame import quaternion_of
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.mesh_file import Mesh
from dynid.report.plots import unpacked
from dynid.studio.solids import basis, capsule, drum, stretched, tube

_PAUSE = 0.6  # s at the end of a motion
_LOOKED = 40  # frames at which the room that the robot needs is looked up
_CLOSE = 0.015  # distance relative to the size of the robot below which bodies are amber
_FIELD = 0.7  # rad: angle of the camera
_SIDE, _HIGH, _STEEP = 0.45, 0.42, 1.35  # rad: from the broad side, from above, and onto a flat robot
_ASPECT = 1.2  # of the frame; wider ones have room at the sides
_FILLED = 0.85  # share of the picture that the robot may fill
_FLAT = 0.02  # height relative to the size
_STEPS = 24  # of a colour that follows a share
_LINK, _GROUND, _DRIVEN, _PASSIVE = (111, 143, 176), (150, 156, 163), (92, 104, 118), (160, 169, 180)
_HEAT = np.array([[0.0, 158.0, 115.0], [230.0, 180.0, 30.0], [213.0, 60.0, 0.0]])
_AMBER, _RED, _MASS, _PATH = (230, 159, 0), (213, 60, 0), (204, 121, 167), (86, 180, 233)
_GRID, _SECTION = (150, 160, 170), (120, 130, 140)  # seen on a light and on a dark page
_NAMED = 8  # joints whose names are shown; more of them would cover the robot
_BOTH = (("from", "a"), ("to", "b"))
Colour = tuple[int, int, int]
Meshes = Mapping[str, Sequence[Mesh]]


class Motion:
    """One motion of a scene.

    Attributes:
        n: Number of frames.
        t: Times, shape (n,), in [s].
        p, R: Places in [m] and quaternions of the bodies in the base frame, shapes (n, b, 3) and (n, b, 4).
        share: In percent, one series for each driven joint or cable.
    """

    def __init__(self, name: str, one: Mapping[str, Any], bodies: int) -> None:
        self.name = name
        self.n = int(one["n"])
        self.t = unpacked(one["t"])
        self.p = unpacked(one["p"]).reshape(self.n, bodies, 3)
        self.R = unpacked(one["R"]).reshape(self.n, bodies, 4)
        self.share = [unpacked(series) for series in one["share"]]
        self.phases = one["phases"]
        self.extra = [(entry["name"], entry["unit"], unpacked(entry["v"])) for entry in one["extra"]]
        self.near = [{**entry, "v": unpacked(entry["v"])} for entry in one["near"]]

    def frames(self, step: int) -> Iterator[tuple[int, float]]:
        """Frames that are drawn, each with the seconds until the next; breaks of a log are short."""
        shown = np.arange(0, self.n, step)
        gaps = np.diff(self.t[shown])
        usual = float(np.median(gaps[gaps > 0.0])) if np.any(gaps > 0.0) else 0.0
        gaps = np.where((gaps > 0.0) & (gaps < 3.0 * usual), gaps, usual)
        yield from zip(shown.tolist(), [*gaps.tolist(), _PAUSE if self.n > 1 else 0.0], strict=True)

    def along(self, body: int, point: Sequence[float]) -> Float[Array, "n 3"]:
        """A point of a body in the base frame, in [m]; the base is -1."""
        v = np.asarray(point, float)
        if body < 0:
            return np.tile(v, (self.n, 1))
        w, axis = self.R[:, body, :1], self.R[:, body, 1:]
        twice = 2.0 * np.cross(axis, v)
        return np.asarray(self.p[:, body] + v + w * twice + np.cross(axis, twice))

    def lines(self, parts: Sequence[Mapping[str, Any]]) -> Float[Array, "n k 2 3"]:
        """Both ends of parts between two bodies, base frame, in [m]."""
        ends = [[self.along(part["from"], part["a"]), self.along(part["to"], part["b"])] for part in parts]
        return np.moveaxis(np.array(ends).reshape(len(parts), 2, self.n, 3), 2, 0)


class Robot:
    """The robot in a scene of Viser; `show` moves and colours it.

    Args:
        place: The scene of Viser.
        scene: Of a page with the other drawing.
        motions: Those of the scene.
        meshes: Body (or `base`) -> its collision meshes.
    """

    def __init__(
        self, place: Any, scene: Mapping[str, Any], motions: Sequence[Motion], meshes: Meshes
    ) -> None:
        self._place, self._scene, self._up = place, scene, np.asarray(scene["up"], float)
        self._ends = np.concatenate([_ends(scene, one)[:: max(1, one.n // _LOOKED)] for one in motions])
        self._ends = self._ends.reshape(-1, 3)
        low, high = self._ends.min(axis=0), self._ends.max(axis=0)
        self._middle, self._size = 0.5 * (low + high), max(1e-3, float(np.linalg.norm(high - low)))
        self._thick = max(float(scene["thick"]), 0.006 * self._size)
        self._of_body: dict[int, list[Any]] = {}
        self._of_share: list[tuple[int, Any]] = []
        self._bodies = [
            place.add_frame(f"/robot/{i + 1}_{_plain(name)}", show_axes=False)
            for i, name in enumerate(scene["bodies"])
        ]
        self._aim()
        self._add_surroundings(motions)
        self._add_bodies()
        self._add_meshes(meshes)
        self._add_joints()
        self._lines = {id(motion): self._ends_of_lines(motion) for motion in motions}
        self._cables, self._rods = self._add_lines(motions[0])
        top = self._middle + 0.92 * np.tan(0.5 * _FIELD) * self._distance * self._eye[1]
        self._text = place.add_label("/values", " ", position=top, anchor="top-center")

    def camera(self) -> tuple[float, Float[Array, "3"], Float[Array, "3"], Float[Array, "3"]]:
        """Angle of view, the point looked at, the place of the camera, and what is up."""
        return _FIELD, self._middle, self._middle + self._distance * self._eye[2], self._up

    def _aim(self) -> None:
        """Look across the direction in which the robot is widest, from slightly above; all of it fits."""
        flat = np.ptp(self._ends @ self._up) < _FLAT * self._size
        across, ahead = self._ground()
        spread = self._ends - self._middle
        x, y = spread @ across, spread @ ahead
        yaw = 0.0 if flat else 0.5 * np.arctan2(2.0 * x @ y, x @ x - y @ y) + _SIDE
        pitch = _STEEP if flat else _HIGH
        right = np.cos(yaw) * across + np.sin(yaw) * ahead
        towards = np.cos(pitch) * np.cross(right, self._up) + np.sin(pitch) * self._up
        self._eye = np.array([right, np.cross(towards, right), towards])
        seen = spread @ self._eye.T
        wide = np.abs(seen[:, :2] / [_ASPECT, 1.0]).max(axis=1) / (_FILLED * np.tan(0.5 * _FIELD))
        self._distance = max(float(np.max(wide + seen[:, 2])), self._size)

    def show(self, motion: Motion, frame: int) -> None:
        """Move all parts to a frame of a motion, in the colours of that frame."""
        for body, p, R in zip(self._bodies, motion.p[frame], motion.R[frame], strict=True):
            body.position, body.wxyz = p, R
        cables, rods = self._lines[id(motion)]
        for part, ends in zip(self._rods, rods[frame], strict=True):
            part.position, part.wxyz, part.scale = stretched(*ends)
        if self._cables is not None:
            self._cables.points = cables[frame].astype(np.float32)
            self._cables.colors = np.repeat(self._pulled(motion, frame)[:, None], 2, axis=1)
        for effort, part in self._of_share:
            _paint(part, _heat(motion.share[effort][frame], self._scene["full"]))
        close = self._close(motion, frame)
        for body, parts in self._of_body.items():
            for part in parts:
                _paint(part, close.get(body, _LINK if body >= 0 else _GROUND))
        self._text.text = self._words(motion, frame)

    def _ground(self) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Two horizontal directions, as the first two axes of the base if the third is vertical."""
        first = np.eye(3)[0] if abs(self._up[0]) < 0.9 else np.eye(3)[1]
        across = first - (first @ self._up) * self._up
        across /= np.linalg.norm(across)
        return across, np.cross(self._up, across)

    def _add_surroundings(self, motions: Sequence[Motion]) -> None:
        """Floor or grid, the frame of the base, and the path of the tip."""
        scene, place, size = self._scene, self._place, self._size
        floor = scene["floor"]
        R = np.column_stack([*self._ground(), self._up])
        height = min(0.0, float(np.min(self._ends @ self._up))) if floor is None else floor
        under = self._middle - (self._middle @ R[:, 2] - height) * R[:, 2]
        cell = _round_step(size / 8.0)
        place.configure_default_lights(cast_shadow=False)  # slow without a graphics card
        place.add_grid(
            "/floor",
            width=20.0 * cell,
            height=20.0 * cell,
            cell_size=cell,
            section_size=5.0 * cell,
            cell_color=_GRID,
            section_color=_SECTION,
            cell_thickness=0.6,
            plane_color=_GRID,
            plane_opacity=0.0 if floor is None else 0.25,
            fade_distance=8.0 * size,
            wxyz=quaternion_of(R),
            position=under,
        )
        words = f"grid {cell:g} m"
        if floor is not None:
            words += f", floor at height {floor:.3g} m" + (" (assumed)" if scene["assumed"] else "")
        place.add_label("/scale", words, position=under - 10.0 * cell * R[:, 1], anchor="top-center")
        place.add_frame("/base", axes_length=0.1 * size, axes_radius=0.004 * size)
        if scene["tip"] >= 0:
            paths = [motion.along(scene["tip"], scene["tip_at"]) for motion in motions]
            path = np.concatenate([np.stack([one[:-1], one[1:]], axis=1) for one in paths])
            if len(path):
                place.add_line_segments("/path", path, _PATH, thickness=1.5, thickness_units="screen")

    def _add_bodies(self) -> None:
        """Links, capsules of collision geometry, and ellipsoids of inertia."""
        scene = self._scene
        within = {part["body"] for part in scene["links"]}
        for kind in ("links", "capsules"):
            for i, part in enumerate(scene[kind]):
                body, r = part["body"], self._thick if kind == "links" else float(part["r"])
                solid = capsule(np.asarray(part["a"], float), np.asarray(part["b"], float), r)
                opacity = 0.35 if kind == "capsules" and body in within else None  # links are seen through it
                name = self._inside(body, f"{kind}_{i + 1}")
                made = self._place.add_mesh_simple(name, *solid, color=_LINK, opacity=opacity)
                self._of_body.setdefault(body, []).append(made)
        for part in scene["ellipsoids"]:
            self._place.add_icosphere(
                self._inside(part["body"], "inertia"),
                radius=1.0,
                scale=tuple(part["half"]),
                wxyz=part["axes"],
                position=part["c"],
                color=_MASS,
                opacity=0.4,
                visible=False,  # as in the other drawing, until asked for
            )

    def _add_meshes(self, meshes: Meshes) -> None:
        index = {name: i for i, name in enumerate(self._scene["bodies"])} | {BASE: -1}
        for body in sorted(meshes.keys() & index.keys()):
            for k, mesh in enumerate(meshes[body]):
                name = self._inside(index[body], f"mesh_{k + 1}")
                triangles = mesh.triangles.astype(np.uint32)
                made = self._place.add_mesh_simple(
                    name,
                    mesh.vertices.astype(np.float32),
                    triangles,
                    color=_LINK,
                    opacity=0.6,
                    flat_shading=True,
                )
                self._of_body.setdefault(index[body], []).append(made)

    def _add_joints(self) -> None:
        """Drums around the axes of joints, blocks along slides, balls for other joints."""
        scene = self._scene
        named = sum(joint["driven"] for joint in scene["joints"])
        for joint in scene["joints"]:
            driven = joint["driven"]
            r, name = (
                (1.5 if driven else 1.1) * self._thick,
                self._inside(joint["body"], _plain(joint["name"])),
            )
            place: dict[str, Any] = {"position": joint["at"], "color": _DRIVEN if driven else _PASSIVE}
            if joint["axis"] is None:
                made = self._place.add_icosphere(name, radius=r, subdivisions=2, **place)
            else:
                place["wxyz"] = quaternion_of(basis(np.asarray(joint["axis"], float)))
                solid = drum(r, 1.5 * r, square=joint["slides"])
                made = self._place.add_mesh_simple(name, *solid, flat_shading=True, **place)
            if joint["effort"] >= 0:
                self._of_share.append((joint["effort"], made))
            if driven:
                self._place.add_label(
                    f"{name}_name",
                    joint["name"],
                    position=joint["at"],
                    visible=named <= _NAMED,
                    font_screen_scale=0.8,
                    anchor="center-left",
                )

    def _add_lines(self, motion: Motion) -> tuple[Any, list[Any]]:
        """Cables as lines, with the places where they leave; rods and travels of slides as cylinders."""
        scene, (cables, rods) = self._scene, self._lines[id(motion)]
        unit = tube(0.4 * self._thick)
        made = [
            self._place.add_mesh_simple(f"/robot/rod_{i + 1}", *unit, color=_LINK)
            for i in range(rods.shape[1])
        ]
        if not scene["cables"]:
            return None, made
        for wire in scene["cables"]:
            name = self._inside(wire["from"], _plain(wire["name"]))
            r = max(float(wire["r"] or 0.0), 0.012 * self._size)
            self._place.add_icosphere(name, radius=r, subdivisions=2, position=wire["a"], color=_DRIVEN)
            self._place.add_label(
                f"{name}_name",
                wire["name"],
                position=wire["a"],
                font_screen_scale=0.8,
                anchor="bottom-center",
            )
        lines = self._place.add_line_segments(
            "/robot/cables", cables[0].astype(np.float32), _DRIVEN, thickness=2.5, thickness_units="screen"
        )
        return lines, made

    def _ends_of_lines(self, motion: Motion) -> tuple[Float[Array, "n c 2 3"], Float[Array, "n r 2 3"]]:
        return motion.lines(self._scene["cables"]), motion.lines(self._scene["rods"])

    def _inside(self, body: int, name: str) -> str:
        """A name in the tree of Viser: what is inside a body moves with it."""
        return f"{self._bodies[body].name}/{name}" if body >= 0 else f"/robot/base/{name}"

    def _pulled(self, motion: Motion, frame: int) -> Array:
        """Colours of the cables, shape (c, 3)."""
        efforts = [wire["effort"] for wire in self._scene["cables"]]
        shares = [motion.share[k][frame] if k >= 0 else np.nan for k in efforts]
        return np.array([_heat(share, self._scene["full"]) for share in shares], dtype=np.uint8)

    def _close(self, motion: Motion, frame: int) -> dict[int, Colour]:
        """Bodies whose distance is small now: amber, and red where they touch."""
        found: dict[int, Colour] = {}
        for one in motion.near:
            distance = one["v"][frame]
            for body in one["bodies"][one["which"][frame]] if distance < _CLOSE * self._size else ():
                found[body] = _RED if found.get(body) == _RED or distance < 0.0 else _AMBER
        return found

    def _words(self, motion: Motion, frame: int) -> str:
        """Name of the motion, time, phase, the worst share, and the smallest distances."""
        now, scene = float(motion.t[frame] - motion.t[0]), self._scene
        phase = next((name for name, end in motion.phases if now <= end + 1e-9), "")
        lines = [", ".join(filter(None, [motion.name, f"{now:.1f} s" if motion.n > 1 else "", phase]))]
        driven = [part for part in [*scene["joints"], *scene["cables"]] if part["effort"] >= 0]
        shares = np.array([motion.share[part["effort"]][frame] for part in driven])
        if np.isfinite(shares).any():
            worst, (before, after) = int(np.nanargmax(shares)), scene["words"]
            lines.append(f"{before}{driven[worst]['name']}, {shares[worst]:.2g}{after}")
        lines += [f"{name} {values[frame]:.3g} {unit}" for name, unit, values in motion.extra]
        for one in motion.near:
            lines.append(f"{1e3 * one['v'][frame]:.3g} mm between {one['names'][one['which'][frame]]}")
        return "\n".join(lines)


def _ends(scene: Mapping[str, Any], motion: Motion) -> Float[Array, "n k 3"]:
    """Points that must be in the picture, base frame, in [m]."""
    parts = [(part["body"], part[end]) for part in (*scene["links"], *scene["capsules"]) for end in "ab"]
    parts += [(part[body], part[end]) for part in (*scene["rods"], *scene["cables"]) for body, end in _BOTH]
    parts += [(joint["body"], joint["at"]) for joint in scene["joints"]]
    parts = parts or [(-1, [0.0, 0.0, 0.0]), (-1, [0.5, 0.5, 1.0])]
    return np.stack([motion.along(body, point) for body, point in parts], axis=1)


def _paint(part: Any, colour: Colour) -> None:
    """Colour a part; nothing is recorded where it has this colour."""
    if tuple(part.color) != colour:
        part.color = colour


def _heat(share: float, full: float) -> Colour:
    """From green over amber to red at `full`; grey where the share is not known."""
    if not np.isfinite(share):
        return _DRIVEN
    k = np.rint(np.clip(share / full, 0.0, 1.0) * _STEPS) / _STEPS
    red, green, blue = (int(np.interp(k, (0.0, 0.5, 1.0), column)) for column in _HEAT.T)
    return red, green, blue


def _plain(name: str) -> str:
    """A name without the sign that divides names in the tree of Viser."""
    return name.replace("/", "|") or "-"


def _round_step(length: float) -> float:
    """A round length, at least this one: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * next(k for k in (1.0, 2.0, 5.0, 10.0) if k * power >= 0.999 * length))
