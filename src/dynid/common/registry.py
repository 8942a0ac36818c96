"""Registry: name -> what does the work, extended by other packages through Python entry points.

Own entries are objects, or "module:attribute" and imported when they are used. Other packages are looked up
only if a name is not a built-in one, or if all names are listed: `dynid --help` reads none of them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, wraps
from importlib import import_module
from typing import Any, TypeVar

from dynid.common.errors import DynidError, InputError

T = TypeVar("T")


@cache
def _installed(path: tuple[str, ...]) -> tuple[Any, ...]:
    """Entry points for dynid of all packages on `path`; of a class that the backport may replace."""
    from importlib.metadata import distributions  # takes longer to import than a short command runs

    by_package: dict[str, list[Any]] = {}
    for package in distributions():
        points = [point for point in package.entry_points if point.group.startswith("dynid.")]
        if points:
            by_package.setdefault(package.name, points)  # the first on the path is the one that is imported
    return tuple(point for points in by_package.values() for point in points)


@dataclass(frozen=True)
class _Plugin:
    """One entry point: an object of another package; `gives` are types that it is or returns."""

    point: Any
    gives: tuple[str, ...]

    @property
    def package(self) -> str:
        """Name and version of its package."""
        distribution = self.point.dist
        return (
            "an unknown package"
            if distribution is None
            else f"package '{distribution.name}' {distribution.version}"
        )

    def error(self, text: str) -> InputError:
        """The message about this plug-in."""
        return InputError(
            f"plug-in '{self.point.name}' of {self.package} ({self.point.group}): {text}",
            remedy="correct, update or uninstall that package",
        )

    def load(self) -> Any:
        """The object, whose faults are reported with the name of its package."""
        try:
            plugin = self.point.load()
        except Exception as error:
            raise self.error(f"cannot be loaded: {_words(error)}") from error
        if inspect.isroutine(plugin):
            return self._guarded(plugin, self._checked)
        return self._with_guards(self._checked(plugin))

    def _with_guards(self, plugin: Any) -> Any:
        """An object whose functions report their errors with the name of the package."""
        if not is_dataclass(plugin) or isinstance(plugin, type):
            return plugin
        routines = {field.name: getattr(plugin, field.name) for field in fields(plugin) if field.init}
        routines = {
            name: self._guarded(value) for name, value in routines.items() if inspect.isroutine(value)
        }
        return replace(plugin, **routines) if routines else plugin

    def _guarded(
        self, function: Callable[..., Any], checked: Callable[[Any], Any] | None = None
    ) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            try:
                result = function(*arguments, **options)
                result = list(result) if inspect.isgenerator(result) else result
            except (DynidError, MemoryError):
                raise
            except Exception as error:
                raise self.error(f"fails: {_words(error)}") from error
            return result if checked is None else checked(result)

        return call

    def _checked(self, value: Any) -> Any:
        """What it gives, if that has the right type."""
        kinds = tuple(loaded(path) for path in self.gives)
        if kinds and not isinstance(value, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise self.error(f"gives {type(value).__name__}, not {wanted}")
        return value


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def loaded(place: Any) -> Any:
    """The object at "module:attribute", imported now; an object itself as it is."""
    if not isinstance(place, str):
        return place
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


class Registry(MutableMapping[str, T]):
    """Objects by name; those of other packages come after the built-in ones, in alphabetical order.

    Args:
        group: Entry points of other packages, e.g. `dynid.readers`.
        built_in: Objects, or where they are: "module:attribute".
        gives: Types, as "module:attribute", that an entry of another package must be, or must return if it
            is a function; empty: not checked.
    """

    def __init__(self, group: str, entries: Mapping[str, T | str], gives: tuple[str, ...] = ()) -> None:
        self.group, self.gives = group, gives
        self.built_in: dict[str, T | str] = dict(entries)
        self._loaded: dict[Any, T] = {}

    @property
    def _plugins(self) -> dict[str, list[_Plugin]]:
        """Entry points by name; several of one name are a conflict, reported when it is used."""
        by_name: dict[str, list[_Plugin]] = {}
        points = [point for point in _installed(tuple(sys.path)) if point.group == self.group]
        for point in sorted(points, key=lambda entry: entry.name):
            by_name.setdefault(point.name, []).append(_Plugin(point, self.gives))
        return by_name

    def __getitem__(self, name: str) -> T:
        """The object of that name, imported now if it was not."""
        if name not in self.built_in:
            return self._other(self._plugins[name])
        entry: T = loaded(self.built_in[name])
        self.built_in[name] = entry
        return entry

    def _other(self, several: list[_Plugin]) -> T:
        plugin = several[0]
        if len({candidate.point.value for candidate in several}) > 1:
            raise plugin.error(
                f"two packages give this name: {' and '.join(candidate.package for candidate in several)}"
            )
        if plugin.point not in self._loaded:
            self._loaded[plugin.point] = plugin.load()
        return self._loaded[plugin.point]

    def __setitem__(self, name: str, value: T) -> None:
        """Register an object in this process only."""
        self.built_in[name] = value

    def __delitem__(self, name: str) -> None:
        """Remove an entry of this process."""
        del self.built_in[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is such an entry; nothing is imported."""
        return name in self.built_in or name in self._plugins

    def __iter__(self) -> Iterator[str]:
        """Own names, then those of other packages."""
        yield from self.built_in
        yield from (name for name in self._plugins if name not in self.built_in)

    def __len__(self) -> int:
        return sum(1 for _ in self)
