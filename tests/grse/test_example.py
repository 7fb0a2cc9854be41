"""The example in the package's docstring, as it stands there."""

import doctest

from skill_evolution import grse


def test_the_docstring_evolves_the_skills_of_a_team() -> None:
    assert doctest.testmod(grse).failed == 0
