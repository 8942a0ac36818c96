"""Draws are the same in every run; shapes are checked, but where calls repeat thousands of times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from jaxtyping import config

settings.register_profile("repeatable", derandomize=True)
settings.register_profile("search")  # pytest --hypothesis-profile=search: new draws, failures remembered
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def shapes_unchecked_where_calls_repeat(request: pytest.FixtureRequest) -> Iterator[None]:
    """Marked `repeated`: other tests check the shapes of the same functions, here it would only take time."""
    if request.node.get_closest_marker("repeated") is None:
        yield
        return
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", False)
