"""The skill-library agent (SAGE): worlds, the agent and its code skills, chains, rewards, metrics, and training.

Only `policy`, `sft`, `grpo` and what belongs to them import torch, transformers or trl; this module doesn't.
"""

from skill_evolution.sage.agent.chains import Chain, run_chain, run_chains
from skill_evolution.sage.agent.code_skills import CodeLibrary, CodeLibraryError, CodeSkill, extract_skills, used_skills
from skill_evolution.sage.agent.episode import Episode, Limits, Policy, PolicySampling, Sample, Turn, run_task
from skill_evolution.sage.agent.metrics import episode_frame, metrics
from skill_evolution.sage.agent.prompt import Prompt
from skill_evolution.sage.agent.retrieval import RETRIEVERS, Retriever
from skill_evolution.sage.agent.rewards import REWARDS, Outcome, group_advantages, outcomes
from skill_evolution.sage.agent.world import Execution, Session, Task, World, WorldError

__all__ = [
    "RETRIEVERS",
    "REWARDS",
    "Chain",
    "CodeLibrary",
    "CodeLibraryError",
    "CodeSkill",
    "Episode",
    "Execution",
    "Limits",
    "Outcome",
    "Policy",
    "PolicySampling",
    "Prompt",
    "Retriever",
    "Sample",
    "Session",
    "Task",
    "Turn",
    "World",
    "WorldError",
    "episode_frame",
    "extract_skills",
    "group_advantages",
    "metrics",
    "outcomes",
    "run_chain",
    "run_chains",
    "run_task",
    "used_skills",
]
