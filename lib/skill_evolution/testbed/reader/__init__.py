"""A rule-following reader behind the ChatModel protocol: a test bed with a known truth, not a language model."""

from skill_evolution.testbed.reader.model import SimulatedReader

__all__ = ["SimulatedReader"]
