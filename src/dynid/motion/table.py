"""Table: the columns of a file, as every reader returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxtyping import Shaped

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice


@dataclass(frozen=True, eq=False)
class Table:
    """Numeric columns of one file, in file order.

    Attributes:
        columns: Name -> values, each shape (n,), as stored (no unit applied).
        skipped: Columns without numbers.
        choices: What the reader decided about the format, in words.
    """

    columns: Mapping[str, Shaped[Array, "n"]]
    skipped: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


def check_names(names: Sequence[str], file: object) -> None:
    """Refuse a header in which a name occurs twice or is empty."""
    for number, name in enumerate(names, start=1):
        if not name:
            raise InputError(
                "a column has no name", file=file, place=f"header, column {number}", remedy="name it"
            )
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InputError(
            f"column name '{doubled[0]}' occurs {names.count(doubled[0])} times",
            file=file,
            place="header",
            remedy="give every column a unique name",
        )
