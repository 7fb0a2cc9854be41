"""The arithmetic of docs/scale.md, against transformers and by hand, and that the page shows what it gives."""

import re

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen2Config

from skill_evolution.base import paths
from skill_evolution.sage.__main__ import _parser
from skill_evolution.sage.config import load_sage_config
from skill_evolution.sage.scale import estimates

PAGE = (paths.ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("shape", [estimates.QWEN_32B, estimates.QWEN_7B], ids=lambda shape: shape.name)
def test_parameters_are_transformers(shape: estimates.Shape) -> None:
    config = Qwen2Config(
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        intermediate_size=shape.feed_forward,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        vocab_size=shape.vocabulary,
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == shape.parameters


def test_by_hand() -> None:
    shape = estimates.QWEN_32B
    assert estimates.states(shape, 32) == pytest.approx(32.76e9 * 16 / 32, rel=1e-3)
    assert estimates.logits(shape, 28_048) == 10 * 28_048 * 152_064
    assert estimates.kv_cache(shape, 1) == 2 * 2 * 64 * 1024  # keys and values, two bytes, layers, 8 heads of 128
    flops = 4 * 2 * 32.76e9 * 384 * 12_000
    assert estimates.training_seconds(shape, 16, passes=4) == pytest.approx(flops / (16 * 989e12 * 0.35), rel=1e-3)


@pytest.mark.parametrize("name", estimates.TABLES)
def test_the_page_shows_the_tables(name: str) -> None:
    assert f"<!-- {name} -->\n{estimates.TABLES[name]()}\n" in PAGE


def test_rows_and_context_are_the_profile_s() -> None:
    config = load_sage_config("paper")
    assert config.grpo.rows == estimates.ROWS
    assert f"{config.agent.context:,}" in PAGE


def test_the_page_s_commands_exist() -> None:
    for line in re.findall(r"-m skill_evolution\.sage ([a-z-]+(?: --(?:profile|arm) [a-z_]+)*)", PAGE):
        words = line.split()
        rest = {"check-launch": ["fsdp"], "verl-data": ["file"]}.get(words[0], [])
        assert _parser().parse_args([*words, *rest]).profile == "paper"
    assert "skill_evolution.sage.scale.verl_adapter.SageAgentLoopManager" in PAGE
