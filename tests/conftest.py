"""Draws are the same in every run; shapes of the first calls of every function are checked."""

from __future__ import annotations

from hypothesis import settings

from tests.typechecker import sample_checks

sample_checks()

settings.register_profile("repeatable", derandomize=True)
settings.register_profile("search")  # pytest --hypothesis-profile=search: new draws, failures remembered
settings.load_profile("repeatable")
