"""A chat between a policy and its tasks as token ids: what is the same whichever engine samples."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from transformers import GenerationConfig, PreTrainedTokenizerBase

from skill_evolution.sage.agent.episode import Sample

_TURN = "\u2402"  # stands for an assistant's turn while a chat template is taken apart; no template contains it


class ChatTokens:
    """The tokenizer's side of a policy.

    Attributes:
        tokenizer: With a chat template.
        stop: Ids at which sampling stops: the tokenizer's end of sequence first, then those that the model's
            generation config names.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None) -> None:
        """For a tokenizer and the generation config of the model that it belongs to.

        Raises:
            ValueError: The tokenizer has no chat template, or one that ends a turn with another token than those at
                which sampling stops.
        """
        self.tokenizer = tokenizer
        self.stop = _stop_ids(tokenizer, generation)
        if not tokenizer.chat_template:
            raise ValueError("the policy's tokenizer has no chat template")
        if (end := self._after_turn("")[0]) not in self.stop:
            raise ValueError(f"the chat template ends a turn with token {end}, sampling stops at {self.stop}")

    def live(self) -> AbstractContextManager[None]:
        """Nothing: what samples batches by itself."""
        return nullcontext()

    def prompt_ids(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The token ids of a conversation, with what opens the assistant's turn at the end."""
        plain = [{**message, "content": self._plain(message["content"])} for message in messages]
        return self._encode(self._render(plain))

    def observation_ids(self, text: str, *, cut: bool = False) -> list[int]:
        """The token ids that follow a sampled turn: the user's turn with `text`, and what opens the next one.

        Args:
            text: What the code printed. It comes from the model's code: a special token spelt out in it stays text.
            cut: The turn was cut off before its end token, which is then put first.
        """
        return self._after_turn(self._plain(text))[0 if cut else 1 :]

    def turn_ids(self, text: str) -> list[int]:
        """The token ids of a turn that says `text`, its end token included: what an expert's turn is trained on as."""
        return [*self._encode(self._plain(text)), self.stop[0]]

    def word_ids(self, text: str) -> list[int]:
        """The token ids of a piece of text by itself."""
        return self._encode(self._plain(text))

    def sampled(self, ids: Sequence[int], logprobs: Sequence[float], limit: int) -> Sample:
        """What was sampled: the ids up to the first end token, or as many as the limit allows."""
        end = next((place for place, token in enumerate(ids[:limit]) if token in self.stop), None)
        kept = ids[: limit if end is None else end + 1]
        text = self.tokenizer.decode(list(kept if end is None else kept[:-1]), skip_special_tokens=True)
        return Sample(tuple(kept), tuple(logprobs[: len(kept)]), str(text), cut=end is None)

    def _render(self, messages: Sequence[Mapping[str, str]]) -> str:
        return str(self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True))  # pyright: ignore[reportArgumentType]

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])  # pyright: ignore[reportArgumentType]

    def _after_turn(self, text: str) -> list[int]:
        messages = [("user", "?"), ("assistant", _TURN), ("user", text)]
        rendered = self._render([{"role": role, "content": content} for role, content in messages])
        return self._encode(rendered.partition(_TURN)[2])

    def _plain(self, text: str) -> str:
        """A text in which no special token stands: model text could otherwise open or end turns."""
        for token in self.tokenizer.all_special_tokens:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text


def seed_of(key: str) -> int:
    """The seed of the sample with this key: 63 bits."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") >> 1


def _stop_ids(tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None) -> list[int]:
    ends = generation.eos_token_id if generation is not None else None
    found = [tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])]
    stop = [end for end in dict.fromkeys(found) if isinstance(end, int)]
    if not stop:
        raise ValueError("neither the tokenizer nor the model's generation config names an end token")
    return stop
