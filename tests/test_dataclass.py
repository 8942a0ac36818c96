"""The package's `dataclass` makes the same classes as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from dynid.common.dataclass import dataclass

MAKERS = {"here": dataclass, "standard": dataclasses.dataclass}


def made(maker: Callable[..., Any], **options: Any) -> Any:
    """A class with every kind of field, and one that inherits from it."""

    @maker(**options)
    class Base:
        """What all have."""

        first: int
        second: str = "b"
        third: list[int] = dataclasses.field(default_factory=list)
        hidden: float = dataclasses.field(default=1.0, repr=False)
        shared: ClassVar[int] = 7

    @maker(**options)
    class Further(Base):
        """More of it."""

        second: str = "c"
        late: int = dataclasses.field(init=False)
        last: tuple[int, ...] = (1,)

        def __post_init__(self) -> None:
            object.__setattr__(self, "late", self.first + 1)

    return Further


@pytest.mark.parametrize("options", [{"frozen": True, "eq": False}, {"frozen": True}, {"eq": False}, {}])
def test_same_as_the_standard_library(options: dict[str, Any]) -> None:
    ours, theirs = (made(maker, **options) for maker in MAKERS.values())
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    a, b = ours(3, third=[2]), theirs(3, third=[2])
    assert repr(a) == repr(b)
    assert "hidden" not in repr(a)
    assert dataclasses.asdict(a) == dataclasses.asdict(b)
    assert ours(1).third is not ours(1).third
    assert (ours(1) == ours(1)) == (theirs(1) == theirs(1))
    assert a != b
    assert ours(1) != ours(2)
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    changed = dataclasses.replace(a, first=9)
    assert (changed.first, changed.late, changed.third) == (9, 10, [2])
    assert copy.copy(a).__dict__ == a.__dict__
    for wrong in ((), (1, 2, 3, 4, 5, 6)):
        with pytest.raises(TypeError, match="argument"):
            ours(*wrong)


def test_frozen_objects_refuse_changes() -> None:
    Frozen = made(dataclass, frozen=True)
    one = Frozen(1)
    for change in (
        lambda: setattr(one, "first", 2),
        lambda: setattr(one, "new", 2),
        lambda: delattr(one, "first"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()

    class Plain(Frozen):  # type: ignore[misc, valid-type]
        """No dataclass itself: it may have attributes of its own."""

    other = Plain(1)
    other.new = 3
    assert other.new == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        other.first = 2


@dataclass(frozen=True)
class Kept:
    """At the top of a module, where pickle finds it."""

    x: int
    y: tuple[int, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and other.x == self.x

    def __hash__(self) -> int:
        return 5


def test_own_methods_stay_and_objects_travel() -> None:
    assert Kept(1, (2,)) == Kept(1)
    assert hash(Kept(1)) == 5
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))).y == (2,)  # noqa: S301 (made here)
