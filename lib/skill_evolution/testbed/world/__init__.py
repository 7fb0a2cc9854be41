"""The bundled world: apps with real state, seeded scenarios of three tasks, a sandbox, and an expert."""

from skill_evolution.testbed.world.expert import STYLES, expert_turns, skill_source
from skill_evolution.testbed.world.sandbox import SandboxLimits
from skill_evolution.testbed.world.values import VALUES
from skill_evolution.testbed.world.world import MiniSession, MiniWorld

__all__ = ["STYLES", "VALUES", "MiniSession", "MiniWorld", "SandboxLimits", "expert_turns", "skill_source"]
