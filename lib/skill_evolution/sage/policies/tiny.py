"""The embedded policy: a Llama of some hundred thousand parameters and a tokenizer made from its world's text.

Random start: all that it knows comes from supervised traces and from reinforcement learning. Sizes and settings are
those that learnt within minutes on two CPU cores in trials of ours.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SIZES: Mapping[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "max_position_embeddings": 1024,
    "initializer_range": 0.08,  # with the usual 0.02 so small a model learns much more slowly
}
"""Fields of LlamaConfig."""
COPY_SCALE = 0.3
"""Attention starts out as copying: in each layer the output projection is so many times the inverse of the value
projection (mimetic initialisation). With it the policy finds values in its prompt within 150 updates, with both drawn
at random not within 400 (trials of ours)."""
VOCABULARY = 2048  # largest; a world of ours needs less than half

USER, ASSISTANT, END, PAD, UNKNOWN = "<|user|>", "<|assistant|>", "<|end|>", "<|pad|>", "<|unknown|>"
SPECIAL = (PAD, UNKNOWN, END, USER, ASSISTANT)
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ ('<|assistant|>' if message['role'] == 'assistant' else '<|user|>') + message['content'] + '<|end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_CONTINUES, _STARTS = "\u203f", "\u2581"  # inside a word that is in several pieces; at the start of a word
# A fence, a line break with the next line's indent, a world's call (one token: a third fewer tokens to learn and to
# sample), a word, a digit, an underscore, other signs with a space around.
_CALL = r"apis(?:\.[a-z_]+)+|complete_task"
_PIECE = rf"```(?:python)?\n?|\n *|{_CALL}|[A-Za-z]+|[0-9]|_| ?(?:(?!```)[^\sA-Za-z0-9_])+ ?| +|[^\S\n ]"
_BETWEEN_WORDS = r"(?<=[A-Za-z]) (?=[A-Za-z])"
_ALPHABET = "".join(chr(code) for code in range(32, 127)) + "\n\t"


def train_tokenizer(texts: Iterable[str], *, max_tokens: int = VOCABULARY) -> PreTrainedTokenizerFast:
    """A tokenizer in which every word and every run of signs of the texts is one token.

    A word is the same token wherever it stands, so that a value can be copied from the instruction into code: a space
    between two words isn't a token (decoding puts it back). Text that isn't in `texts` falls apart into the longest
    known pieces, down to single characters (WordPiece); characters that are neither ASCII nor in `texts` are lost.

    Args:
        texts: The world's text: instructions, documentation, traces, outputs.
        max_tokens: Largest vocabulary; the most frequent pieces get in.
    """
    counts = Counter(piece for text in texts for piece in re.findall(_PIECE, re.sub(_BETWEEN_WORDS, "\x00", text)))
    frequent = sorted(counts, key=lambda piece: (-counts[piece], piece))
    letters = sorted({*_ALPHABET, *(letter for piece in counts for letter in piece if letter != "\x00")})
    single = [*letters, *(f"{_CONTINUES}{letter}" for letter in letters)]
    pieces = list(dict.fromkeys([*SPECIAL, *single, *frequent]))[:max_tokens]
    return _wrapped(_backend({piece: index for index, piece in enumerate(pieces)}))


def _backend(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(
        models.WordPiece(
            vocab=vocabulary,
            unk_token=UNKNOWN,
            continuing_subword_prefix=_CONTINUES,
            max_input_chars_per_word=10_000,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_BETWEEN_WORDS), "removed"),
            pre_tokenizers.Split(Regex(_PIECE), "isolated"),
        ]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(Regex(r"^(?=[A-Za-z])"), _STARTS),
            decoders.Fuse(),
            decoders.Replace(Regex(rf"(?<=[A-Za-z]){_STARTS}"), " "),
            decoders.Replace(_STARTS, ""),
            decoders.Replace(_CONTINUES, ""),
        ]
    )
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return tokenizer


def _wrapped(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=UNKNOWN,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[USER, ASSISTANT],
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def tiny_llama(tokenizer: PreTrainedTokenizerFast, *, seed: int, **sizes: Any) -> LlamaForCausalLM:
    """A Llama for the tokenizer, its random weights from the seed; `sizes` are those that differ from SIZES."""
    llama = LlamaConfig(
        vocab_size=len(tokenizer),
        **{**SIZES, **sizes},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=SPECIAL.index(END),  # special tokens are the vocabulary's first
        pad_token_id=SPECIAL.index(PAD),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(llama)
        _start_by_copying(model)
        return model


def _start_by_copying(model: LlamaForCausalLM) -> None:
    """Value projections become orthogonal, output projections COPY_SCALE times their inverse: a token that is attended
    to is written out as itself, which the tied embeddings then read as its logit."""
    for layer in model.model.layers:
        attention: Any = layer.self_attn
        weight = attention.v_proj.weight
        orthogonal = torch.linalg.qr(torch.randn(weight.shape))[0]
        with torch.no_grad():
            weight.copy_(orthogonal)
            attention.o_proj.weight.copy_(COPY_SCALE * orthogonal.T)
