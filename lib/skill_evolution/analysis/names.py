"""Ids to the names that tables and figures show."""

import pandas as pd

NAMES = {
    "grse": "GRSE",
    "maskills": "MASkills",
    "empty": "no skills",
    "direct": "direct",
    "cot": "CoT",
    "cot_sc": "CoT-SC",
    "self_refine": "Self-Refine",
    "full_context": "full context",
    "hotpotqa": "HotpotQA",
    "locomo": "LoCoMo",
    "multi_hop": "multi-hop",
    "open_domain": "open-domain",
    "single_hop": "single-hop",
    # ablations
    "no_structured_diagnosis": "no structured diagnosis",
    "single_rollout": "G = 1",
    "drop_equal_groups": "equal groups dropped",
    "label_conditioned": "label-conditioned",
    # teams with planted skills
    "perturbed": "perturbed start",
    "helpful_only": "helpful skills only",
    "maskills from helpful_only": "MASkills from the helpful skills",
    "grse from helpful_only": "GRSE from the helpful skills",
    # SAGE's arms, and the methods of its paper
    "prompted": "prompted",
    "sft": "SFT",
    "grpo": "GRPO, no library",
    "sft_grpo": "SFT+GRPO, no library",
    "sage": "SAGE",
    "reward_outcome": "outcome reward",
    "reward_chain": "chain reward",
    "chain_of_one": "K = 1",
    "chain_of_three": "K = 3",
    "start_base_model": "from the base",
    "start_self_distillation": "from self-distillation",
    "start_rl_warm_up": "from RL warm-up",
    "sage_empty_library": "SAGE, empty library",
    "sft_empty_library": "SFT, empty library",
    "prompted_empty_library": "prompted, empty library",
    "retrieval_same_scenario": "same scenario",
    "retrieval_query_ngram": "query n-gram",
    "retrieval_query_embedding": "query embedding",
    "retrieval_skill_embedding": "skill embedding",
    "react": "ReAct",
    "loop": "LOOP",
}
_COLUMNS = ("benchmark", "method", "baseline", "category", "trained_on")


def named(value: str) -> str:
    """The name of an id; any other text as it is."""
    return NAMES.get(value, value)


def displayed(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The frame with ids replaced by names, as values and as column heads; call it after joining reported figures.

    `columns` are those whose values are replaced; without any, all that usually hold ids.
    """
    values = {column: frame[column].replace(NAMES) for column in columns or _COLUMNS if column in frame}
    return frame.assign(**values).rename(columns=NAMES)
