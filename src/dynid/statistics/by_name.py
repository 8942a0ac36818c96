"""A result as a mapping of names to parameters: `estimate["Fv_elbow"]`, `dict(estimate)`."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import TYPE_CHECKING, Any

from dynid.common.errors import NoParameterError, nearest

if TYPE_CHECKING:
    from dynid.statistics.estimate import ParameterEstimate


class ByName:
    """The methods of a mapping, over `parameters`. Always true, also without parameters.

    It is not a `Mapping`: functions that take a mapping of columns or of settings would take it for one.
    """

    parameters: tuple[ParameterEstimate, ...]

    def __getitem__(self, name: str) -> ParameterEstimate:
        """The parameter called `name`."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        owners = ", ".join(p.name for p in self.parameters if str(name) in p.grouping.split())
        hint = f": it is part of {owners}" if owners else nearest(name, self)
        raise NoParameterError(f"no parameter '{name}'{hint}")

    def __iter__(self) -> Iterator[str]:
        """Names of the parameters."""
        return (parameter.name for parameter in self.parameters)

    def __len__(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    def __bool__(self) -> bool:
        """A result is true, also one without parameters."""
        return True

    def keys(self) -> KeysView[str]:
        """Names of the parameters."""
        return self._by_name.keys()

    def values(self) -> ValuesView[ParameterEstimate]:
        """The parameters."""
        return self._by_name.values()

    def items(self) -> ItemsView[str, ParameterEstimate]:
        """Names and parameters."""
        return self._by_name.items()

    def get(self, name: str, default: Any = None) -> Any:
        """The parameter called `name`, or the default."""
        return self._by_name.get(name, default)

    @property
    def _by_name(self) -> dict[str, ParameterEstimate]:
        return {parameter.name: parameter for parameter in self.parameters}
