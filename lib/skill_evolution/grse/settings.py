"""The method's own settings; defaults are the paper's (FACTS A). A run's Config adds what it runs on."""

from pydantic import Field

from skill_evolution.base.settings import Strict
from skill_evolution.models.base import Sampling


class Settings(Strict):
    """How skills evolve. GRSE's ablations and MASkills are other values of the same fields."""

    seed: int = Field(default=0, ge=0)
    """Seed of the run: enters every call's sample_id."""
    group_size: int = Field(default=4, ge=1)
    """G, rollouts a question (paper A: 4; MASkills 1)."""
    iterations: int = Field(default=5, ge=0)
    """Rounds of evolution (paper A: 5)."""
    advantage_std: bool = False
    """Divide advantages by the group's standard deviation (off in the paper's setting)."""
    structured_diagnosis: bool = True
    """Ask the critic for checked failure diagnoses (paper 5.5 switches it off as an ablation)."""
    drop_equal_groups: bool = False
    """Leave out groups whose rewards do not differ (ablation "DAPO filter", paper 5.5)."""
    label_conditioned: bool = False
    """Condition credit and updates on the question's category (ablation, paper 5.5)."""
    utility_momentum: float = Field(default=0.6, ge=0, le=1)
    """u <- m u + (1 - m) mean credit (MASkills: 0.6)."""
    prune_threshold: float = -0.3
    """Prune at this iteration's score or below (MASkills: -0.3)."""
    induction_support: int = Field(default=2, ge=1)
    """Distinct questions that a pattern needs before a skill is induced from it (FACTS A, inferred: 2)."""
    group_patterns: bool = True
    """Group induction evidence into patterns over questions; off passes on single residuals, as MASkills does."""
    hard_reward: float = 0.5
    """A question is a hard case at this mean reward or below (MASkills: 0.5)."""
    library_cap: int = Field(default=8, ge=1)
    """Skills an agent may hold (MASkills: 8 on HotpotQA, 4 on LoCoMo)."""
    consolidate_every: int = Field(default=2, ge=1)
    """Consolidate in every n-th iteration (paper A: 2)."""
    prune_every: int = Field(default=2, ge=1)
    """Prune in every n-th iteration (paper A: 2 on HotpotQA, 3 on LoCoMo)."""
    gate_delta: float = Field(default=0.03, ge=0)
    """A candidate library is kept if its validation score is at least the base's minus this (MASkills: 0.03)."""
    grep_calls: int = Field(default=3, ge=0)
    """Searches an agent may make a question (MASkills: 3)."""
    grep_lines: int = Field(default=20, ge=1)
    """Lines a search returns at most (MASkills: 20)."""
    handover_items: int = Field(default=6, ge=1)
    """Lines an agent may hand over (MASkills: 6 excerpts)."""
    train_sampling: Sampling = Sampling()
    """Training rollouts (paper A: the model's own default)."""
    validation_sampling: Sampling = Sampling()
    """Validation (paper A: HotpotQA as in training, LoCoMo greedy)."""
    test_sampling: Sampling = Sampling(temperature=0)
    """Test (paper A: greedy)."""
    critic_sampling: Sampling = Sampling(temperature=0, max_tokens=4096)
    """Critic (our choice: greedy)."""
    optimizer_sampling: Sampling = Sampling(max_tokens=4096)
    """Aggregation and operators (our choice: the model's default)."""
    fit_replies: bool = False
    """Narrow the schemas of critic's and optimizer's replies so that the longest one fits their max_tokens. For small
    models, which fill strings and lists up to their bounds (reply_schemas.py)."""
