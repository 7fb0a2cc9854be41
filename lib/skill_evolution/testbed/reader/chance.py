"""Named random draws: a function of the call's sample_id and the draw's name, never of the order of draws."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

Option = TypeVar("Option")

DEFAULT_TEMPERATURE = 1.0


def uniform(*names: str) -> float:
    """A number in [0, 1) that depends on the names alone."""
    digest = hashlib.sha256("\x1f".join(names).encode("utf-8")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def temper(p: float, temperature: float) -> float:
    """A probability with its logit divided by a temperature above 0: p^(1/T) normalised."""
    if p in (0.0, 1.0):
        return p
    if temperature < 0.02:  # the powers below underflow; that near to 0 the likelier branch is certain
        return float(p > 0.5) if p != 0.5 else 0.5
    yes, no = p ** (1 / temperature), (1 - p) ** (1 / temperature)
    return yes / (yes + no)


class Chance:
    """The random side of one call.

    Two calls with the same sample_id share their draws name by name ("common random numbers"), also where they are
    shown different skill libraries, so what differs between them is due to the libraries.

    Args:
        sample_id: Names the call.
        temperature: None is the model's own default (1.0); 0 takes the likelier branch whatever the sample_id, and a
            tie counts as no.
    """

    def __init__(self, sample_id: str, temperature: float | None) -> None:
        self.sample_id = sample_id
        self.temperature = DEFAULT_TEMPERATURE if temperature is None else temperature
        if self.temperature < 0:
            raise ValueError(f"temperature must not be negative, got {temperature}")

    def follows(self, key: str, p: float) -> bool:
        """A yes/no draw called `key` with probability `p` of yes at temperature 1."""
        if self.temperature == 0:
            return p > 0.5
        return uniform(self.sample_id, key) < temper(p, self.temperature)

    def pick(self, key: str, options: Sequence[Option], weights: Sequence[float]) -> Option:
        """One of `options`, drawn by `weights` at temperature 1; the heaviest (the first of equals) at 0."""
        if len(options) != len(weights) or not options or max(weights) <= 0:
            raise ValueError(f"{key}: needs as many weights as options and a positive one, got {weights}")
        top = max(weights)
        if self.temperature < 0.02:
            return options[list(weights).index(top)]
        tempered = [(max(weight, 0.0) / top) ** (1 / self.temperature) for weight in weights]
        mark = uniform(self.sample_id, key) * sum(tempered)
        for option, weight in zip(options, tempered, strict=True):
            mark -= weight
            if mark < 0:
                return option
        return options[list(weights).index(top)]  # rounding left the mark on the upper edge

    def coin(self, key: str, text: str) -> bool:
        """An even draw; a greedy call settles it by `text` (say, the question) instead of the sample_id."""
        return uniform(text if self.temperature == 0 else self.sample_id, "coin", key) < 0.5
