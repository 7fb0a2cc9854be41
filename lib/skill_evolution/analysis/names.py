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
    "no_structured_diagnosis": "no structured diagnosis",
    "single_rollout": "G = 1",
    "drop_equal_groups": "equal groups dropped",
    "label_conditioned": "label-conditioned",
}
_COLUMNS = ("benchmark", "method", "baseline", "category", "trained_on")


def displayed(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with ids replaced by names, as values and as column heads; call it after joining reported figures."""
    values = {column: frame[column].replace(NAMES) for column in _COLUMNS if column in frame}
    return frame.assign(**values).rename(columns=NAMES)
