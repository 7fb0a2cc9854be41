from typing import Any

import pytest
import torch
from toy_world import TEXTS

from skill_evolution.sage.policies.tiny import tiny_llama, train_tokenizer


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS,
        "unseen words fall apart and come back",
        "a b  c   d",
        "x = 12 + y_1\n        return  x",
        " lead and trail ",
        "if a == b:\n\n\tpass",
        "f(a,b)  # note: don't",
        "",
    ],
)
def test_text_comes_back(text: str) -> None:
    tokenizer = train_tokenizer(TEXTS)
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text  # pyright: ignore[reportArgumentType]


def test_a_word_is_one_token_wherever_it_stands() -> None:
    tokenizer = train_tokenizer(TEXTS)
    [red] = tokenizer("red")["input_ids"]  # pyright: ignore[reportGeneralTypeIssues]
    for text, tokens in (("paint red", 2), ('paint("red")', 4), ("wall_red now", 4)):
        ids = list(tokenizer(text)["input_ids"])  # pyright: ignore[reportArgumentType]
        assert red in ids
        assert len(ids) == tokens


def test_the_fence_and_a_line_with_its_indent_are_one_token() -> None:
    ids = train_tokenizer(TEXTS)("```python\ndef paint(colour):\n    pass\n```")["input_ids"]
    # fence, def, paint, (, colour, ):, newline and indent, pass, newline, fence
    assert len(list(ids)) == 10  # pyright: ignore[reportArgumentType]


def test_a_seed_gives_the_same_weights_and_leaves_torchs_own_generator_alone() -> None:
    tokenizer = train_tokenizer(TEXTS)
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, two, other = (tiny_llama(tokenizer, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    weights = [model.model.embed_tokens.weight for model in (one, two, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert weights[0].std().item() == pytest.approx(0.08, rel=0.05)


def test_attention_starts_as_copying() -> None:
    """Of each layer the value projection is orthogonal and the output projection 0.3 times its inverse."""
    for layer in tiny_llama(train_tokenizer(TEXTS), seed=1, hidden_size=16, intermediate_size=32).model.layers:
        attention: Any = layer.self_attn
        value, output = attention.v_proj.weight, attention.o_proj.weight
        assert torch.allclose(value @ value.T, torch.eye(16), atol=1e-5)
        assert torch.allclose(output @ value, 0.3 * torch.eye(16), atol=1e-5)
