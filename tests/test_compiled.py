"""Compiled loops where nothing can be written: they run, and it is said once."""

from __future__ import annotations

import pytest
from numba.core.caching import CacheImpl

from dynid.common import compiled


def test_65_without_a_writable_cache_kernels_run_and_it_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    compiled._say_uncached.cache_clear()

    def double(x):
        return 2.0 * x

    kernels = [compiled.kernel(double), compiled.inner(double)]
    assert kernels[0](1.5) == 3.0
    assert [record.getMessage().count("NUMBA_CACHE_DIR") for record in caplog.records] == [1]


def test_other_failures_of_the_cache_are_not_hidden(monkeypatch):
    def broken(self, function):
        raise RuntimeError("something else")

    monkeypatch.setattr(CacheImpl, "__init__", broken)
    with pytest.raises(RuntimeError, match="something else"):
        compiled.kernel(lambda x: x)
