"""Assets of an MJCF: where their files are, and meshes as shapes of bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import numpy as np

from dynid.common.errors import InputError
from dynid.mechanism.frame import Frame, rotation_of
from dynid.mechanism.mesh_file import MeshShape
from dynid.mechanism.mjcf.file import Defaults, entries
from dynid.mechanism.urdf_tree import check_path
from dynid.mechanism.xml_elements import Element


def check_assets(root: Element) -> None:
    """Refuse paths of meshes, textures and the like that leave the model's folder; none is opened."""
    folders = _folders(root)
    for section in root.children:
        for element in section.walk() if section.tag == "asset" else ():
            for path in _paths(element, folders):
                check_path(element, path, root.file)


def mesh_assets(root: Element, defaults: Defaults) -> dict[str, Element]:
    """The <mesh> elements by name, with their defaults; `file` is relative to the model."""
    folders, assets = _folders(root), {}
    for element in entries(root, "asset"):
        if element.tag == "mesh":
            asset = defaults.applied(element)
            name = asset.attributes.get("name") or PurePosixPath(asset.attributes.get("file", "")).stem
            asset.attributes["file"] = next(_paths(asset, folders), "")
            assets[name] = asset
    return assets


def mesh_shape(geom: Element, place: Frame, assets: Mapping[str, Element]) -> MeshShape | None:
    """The mesh that a geom shows, or that it is fitted to; None without one, or if it is not readable.

    MuJoCo moves a mesh to the centre and axes of its inertia, and the geom by as much the other way: vertices
    of the file stay where `pos` and `quat` of the geom put them.

    Args:
        place: Of the geom in its body.
    """
    asset = assets.get(geom.attributes.get("mesh", ""))
    if asset is None:
        return None
    try:
        scale, origin, turn = (
            np.array(
                [value for value, _ in asset.numbers(key, "mesh", range(len(usual), len(usual) + 1)) or []]
            )
            if key in asset.attributes
            else np.array(usual)
            for key, usual in (
                ("scale", (1.0, 1.0, 1.0)),
                ("refpos", (0.0, 0.0, 0.0)),
                ("refquat", (1.0, 0.0, 0.0, 0.0)),
            )
        )
        R = rotation_of(turn / np.linalg.norm(turn))
    except (InputError, ValueError):
        return None
    linear = place.R @ np.diag(scale) @ R.T
    return MeshShape(asset.attributes.get("file", ""), asset.file, linear, place.p - linear @ origin)


def _folders(root: Element) -> dict[str, str]:
    """Settings of the compiler that say where files are."""
    folders: dict[str, str] = {}
    for compiler in root.children:
        if compiler.tag == "compiler":
            folders |= {key: value for key, value in compiler.attributes.items() if key.endswith("dir")}
            stripped = compiler.attributes.get("strippath") == "true"
            folders |= {"strip": "yes"} if stripped else {}
    return folders


def _paths(element: Element, folders: Mapping[str, str]) -> Iterator[str]:
    """Paths of an asset, relative to the model."""
    folder = folders.get("texturedir" if element.tag == "texture" else "meshdir", folders.get("assetdir", ""))
    for key, name in element.attributes.items():
        if key.startswith("file") and name:
            bare = name.replace("\\", "/").rsplit("/", 1)[-1] if "strip" in folders else name
            yield f"{folder.rstrip('/')}/{bare}" if folder else bare
