"""Memory and time of a training step at a size that can't be tried here: arithmetic, with every assumption named.

The tables of docs/scale.md are made from this module: python -m skill_evolution.sage.scale.estimates
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

GB = 1e9
# Bytes a parameter in mixed precision: bfloat16 weights and gradients, and AdamW's float32 weights and two moments.
WEIGHTS, GRADIENTS, OPTIMIZER = 2, 2, 12
TOKENS_A_ROW = 12_000  # assumption: prompt, turns and observations of a task on average; the longest are 28,048
SAMPLED_A_ROW = (
    2_500  # assumption, between the tokens a task that the paper reports at the end (1,475) and for GRPO (3,613)
)
ROWS = 384  # FACTS B: 24 scenarios x 2 tasks x G = 8
PEAK_FLOPS = 989e12  # of an H100 in bfloat16, dense (its data sheet)
UTILISATION = 0.35  # assumption: share of the peak that training reaches
TOKENS_A_SECOND = 1_500  # assumption: sampled by one replica of the rollout server (four H100s), many chains at once


@dataclass(frozen=True)
class Shape:
    """A decoder like Llama or Qwen2: what its config.json says."""

    name: str
    hidden: int
    layers: int
    feed_forward: int
    heads: int
    kv_heads: int
    vocabulary: int

    @property
    def parameters(self) -> int:
        """Weights of attention (biases of q, k and v included), feed-forward and norms, and two embeddings."""
        key_value = self.hidden * self.kv_heads // self.heads
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * key_value + self.hidden + 2 * key_value
        layer = attention + 3 * self.hidden * self.feed_forward + 2 * self.hidden
        return self.layers * layer + 2 * self.vocabulary * self.hidden + self.hidden


QWEN_32B = Shape("Qwen2.5-32B-Instruct", 5120, 64, 27_648, 40, 8, 152_064)
QWEN_7B = Shape("Qwen2.5-7B-Instruct", 3584, 28, 18_944, 28, 4, 152_064)


def states(shape: Shape, gpus: int) -> float:
    """Bytes a GPU of weights, gradients and optimizer, all sharded (ZeRO-3, FSDP)."""
    return shape.parameters * (WEIGHTS + GRADIENTS + OPTIMIZER) / gpus


def gathered(shape: Shape) -> float:
    """Bytes of two layers' whole weights: the one that computes, and the next one on its way."""
    return 2 * WEIGHTS * (shape.parameters - 2 * shape.vocabulary * shape.hidden) / shape.layers


def activations(shape: Shape, tokens: int) -> float:
    """Bytes of one row with gradient checkpointing: each layer's input in bfloat16, and all of the one recomputed.

    In that one: about eight tensors of the hidden size and four of the feed-forward size; attention that never holds
    tokens x tokens (scaled_dot_product_attention).
    """
    inputs = 2 * tokens * shape.hidden * shape.layers
    return inputs + 2 * tokens * (8 * shape.hidden + 4 * shape.feed_forward)


def logits(shape: Shape, tokens: int) -> float:
    """Bytes of one row's logits, which TRL holds in bfloat16 and in float32, and their gradient."""
    return (2 + 4 + 4) * tokens * shape.vocabulary


def kv_cache(shape: Shape, tokens: int) -> float:
    """Bytes of keys and values of one chain on the rollout server, in bfloat16."""
    return 2 * 2 * tokens * shape.layers * shape.hidden * shape.kv_heads // shape.heads


def training_seconds(shape: Shape, gpus: int, *, passes: int) -> float:
    """Seconds of a step's forward and backward passes: 2 FLOPs a parameter and token for each pass's forward."""
    return 2 * passes * shape.parameters * ROWS * TOKENS_A_ROW / (gpus * PEAK_FLOPS * UTILISATION)


def sampling_seconds(replicas: int) -> float:
    """Seconds of a step's rollouts, if the replicas of the server are kept busy and the world costs nothing."""
    return ROWS * SAMPLED_A_ROW / (replicas * TOKENS_A_SECOND)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def memory_table() -> str:
    """What one GPU holds, for one row a micro-batch."""
    cases = [
        (QWEN_32B, 32, 28_048),
        (QWEN_32B, 32, 12_000),
        (QWEN_32B, 8, 12_000),
        (QWEN_7B, 8, 28_048),
        (QWEN_7B, 8, 12_000),
    ]
    rows = []
    for shape, gpus, tokens in cases:
        parts = [states(shape, gpus), gathered(shape), activations(shape, tokens), logits(shape, tokens)]
        whole = sum(parts)
        rows.append(
            [shape.name, str(gpus), f"{tokens:,}", *(f"{part / GB:.1f}" for part in parts), f"**{whole / GB:.0f}**"]
        )
    head = ["model", "GPUs", "tokens a row", "states", "gathered layers", "activations", "logits", "sum, GB a GPU"]
    return table(head, rows)


def server_table() -> str:
    """What the rollout server holds on four GPUs of 80 GB."""
    rows = []
    for shape in (QWEN_32B, QWEN_7B):
        weights, chain = WEIGHTS * shape.parameters, kv_cache(shape, 28_048)
        room = 0.9 * 4 * 80 * GB - weights
        cells = [f"{weights / GB:.1f}", f"{chain / GB:.1f}", f"{room / GB:.0f}", str(int(room // chain))]
        rows.append([shape.name, *cells])
    return table(["model", "weights, GB", "cache of one chain, GB", "room, GB", "full chains at once"], rows)


def time_table() -> str:
    """How long a step of the paper's size takes."""
    rows = []
    for shape, gpus, replicas in ((QWEN_32B, 28, 1), (QWEN_32B, 16, 4), (QWEN_7B, 4, 1)):
        old, update = (training_seconds(shape, gpus, passes=passes) for passes in (1, 4))
        sampled = sampling_seconds(replicas)
        minutes = [f"{seconds / 60:.1f}" for seconds in (sampled, old, update, sampled + old + update)]
        rows.append([shape.name, str(gpus), str(4 * replicas), *minutes])
    head = ["model", "GPUs training", "GPUs sampling", "rollouts", "log-probabilities", "update", "step, minutes"]
    return table(head, rows)


TABLES = {"memory": memory_table, "server": server_table, "time": time_table}

if __name__ == "__main__":
    sys.stdout.write("\n\n".join(make() for make in TABLES.values()) + "\n")
