"""Checks of a fitted table: right conventions, one mass in all directions, motion that fits the joints."""

from __future__ import annotations

from jaxtyping import Float

from dynid.cases.wrench_table.balance_tests import check_signs, direction_masses, mass_tests, mass_words
from dynid.cases.wrench_table.motion_checks import motion_notices
from dynid.cases.wrench_table.readings import check_reading
from dynid.checks.check import Answer
from dynid.common.arrays import Array
from dynid.common.notices import Notice, notice
from dynid.problem import Problem
from dynid.projection.wrench import WrenchRows

_BALANCED = 0.05  # of the wrenches, that measured data may leave too


def table_checks(problem: Problem, chi: Float[Array, "p"]) -> list[Answer]:
    """Tests, warnings and words about a fit to tables; a table that was misread is refused.

    Args:
        problem: Of the model `wrench`.
        chi: Standard parameters that give the same wrenches, shape (p,), SI.
    """
    sources = [source for source in problem.sources if isinstance(source, WrenchRows)]
    left = [check_reading(source) for source in sources]
    index = {parameter.name: i for i, parameter in enumerate(problem.parameters)}
    directions = direction_masses(sources, chi)
    masses = {one.body: float(chi[index[f"M_{one.body}"]]) for one in directions}
    if masses:
        check_signs(sources, masses)
    tests, notices = mass_tests(directions, masses)
    words = [("mass by direction", mass_words(directions, masses))] if directions else []
    motion = [notice for source in sources for notice in motion_notices(source)]
    if max(left) > _BALANCED:
        motion.insert(0, _unbalanced(max(left)))
    return [*notices, *motion, *words, *tests]


def _unbalanced(left: float) -> Notice:
    return notice("no-balance", percent=100 * left)
