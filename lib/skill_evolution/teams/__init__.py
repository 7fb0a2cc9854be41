"""Teams of agents with fixed roles: what they are, how they work on one question, and the single-model baselines."""

from skill_evolution.teams.team import Execution, Libraries, Role, Step, Team

__all__ = ["Execution", "Libraries", "Role", "Step", "Team"]
