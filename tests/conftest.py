"""Settings for all tests."""

from hypothesis import settings

# No deadline for a single example: on two busy cores any one may take long, and that says nothing about the code.
settings.register_profile("skill-evolution", deadline=None)
settings.load_profile("skill-evolution")
