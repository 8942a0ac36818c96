"""Identify the dynamics of robots: parameters you can trust, from a description and a log.

    from dynid import identify
    estimate = identify("serial6", "log.csv")
    estimate.summary()

Everything is loaded on first use, so that importing dynid costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynid.experiment import Experiment
    from dynid.identify import identify
    from dynid.mechanism.load import load_robot
    from dynid.mechanism.mechanism import Mechanism
    from dynid.report.json_file import read_result
    from dynid.statistics.estimate import Estimate

    __version__: str

__all__ = ["Estimate", "Experiment", "Mechanism", "__version__", "identify", "load_robot", "read_result"]

_HOME = {
    "Estimate": "dynid.statistics.estimate",
    "Experiment": "dynid.experiment",
    "Mechanism": "dynid.mechanism.mechanism",
    "load_robot": "dynid.mechanism.load",
    "read_result": "dynid.report.json_file",
}


class _CallableModule(ModuleType):
    """A module that can be called as the function of its own name."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **options)


class _Package(ModuleType):
    """The package. `dynid.identify` is a module and the main function alike.

    Python binds a submodule to its package when it is first imported, from anywhere; without
    this, `dynid.identify(...)` would work or fail depending on who imported what before.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "identify" and isinstance(value, ModuleType):
            value.__class__ = _CallableModule
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("dynid")
    if name == "identify":
        return import_module("dynid.identify")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dynid' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
