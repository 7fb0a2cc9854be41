"""What a real model behind vLLM does through our stack: prints its figures and the budgets they are held to.

    make serve PROFILE=cpu                                  # in another shell, on an otherwise idle machine
    .venv/bin/python benchmarks/served_model.py [--part throughput|cache|critic|repeat] [--data FILE]

throughput: 16 requests at once, through ServerModel and a ledger, and the same bodies sent straight to the server by a
bare HTTP client; after a warm-up the two take turns, and the medians are compared.
cache: training rollouts (G = 4); the share of prompt tokens that came from the prefix cache, by
vLLM's own counters.
critic: group-relative critic calls under the JSON schema; the share whose reply parses.
repeat: the same rollouts with 1, 4 and 16 calls at once, and in reversed order: identical in float32.
"""

import argparse
import asyncio
import collections
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

from skill_evolution.base.aio import gather
from skill_evolution.benchmarks import BENCHMARKS
from skill_evolution.grse.critic import GroupCritic
from skill_evolution.grse.rollouts import Group, run_group
from skill_evolution.models.base import ChatModel, Completion, Request
from skill_evolution.models.chat_completion import request_body
from skill_evolution.models.ledger import Ledger, RecordedModel
from skill_evolution.models.replies import Caller
from skill_evolution.runs.config import Config, load_config
from skill_evolution.runs.experiments import benchmark_of, make_model, team_of
from skill_evolution.skills import Skill
from skill_evolution.teams.team import Call, Libraries

AT_ONCE, ROUNDS, QUESTIONS = 16, 3, 20
THROUGHPUT, CACHED, PARSED = 0.9, 0.6, 0.99  # the budgets
COUNTER = re.compile(r"^vllm:prefix_cache_(queries|hits)_total\{[^}]*\} (\S+)$", re.MULTILINE)


class Kept:
    """A model whose requests and completions are kept."""

    def __init__(self, model: ChatModel) -> None:
        self.model, self.name, self.context_length = model, model.name, model.context_length
        self.calls: list[tuple[Request, Completion]] = []

    async def connect(self) -> None:
        """Nothing: the model is connected."""

    async def generate(self, request: Request) -> Completion:
        """The model's completion."""
        completion = await self.model.generate(request)
        self.calls.append((request, completion))
        return completion

    async def close(self) -> None:
        """Nothing: the model is closed by its owner."""


def server(config: Config, concurrency: int = AT_ONCE) -> ChatModel:
    """The profile's actor, with another concurrency limit."""
    return make_model(config.actor.model_copy(update={"max_concurrency": concurrency}))


async def rollouts(config: Config, model: ChatModel, n: int, *, group_size: int = 4, step: int = 1) -> list[Group]:
    """Training rollouts of the first n questions, all side by side, under empty libraries."""
    benchmark, team = benchmark_of(config), team_of(config)
    call = Call(model, config.train_sampling, "train")
    return await gather(
        run_group(team, benchmark, question, team.empty_libraries(), call, group_size=group_size)
        for question in benchmark.splits["train"][:n][::step]
    )


async def throughput(config: Config) -> bool:
    """Completion tokens a second through our stack and straight, taking turns."""
    model = server(config)
    kept = Kept(model)
    await rollouts(config, kept, AT_ONCE // 4)
    requests = [request for request, _ in kept.calls][:AT_ONCE]
    straight, ours = [], []
    for number in range(ROUNDS + 1):  # the first warms up
        rates = await _straight(config, requests), await _ours(model, requests)
        if number:
            straight.append(rates[0])
            ours.append(rates[1])
    await model.close()
    ratio = statistics.median(ours) / statistics.median(straight)
    print(f"throughput, {len(requests)} at once, completion tokens a second: straight {straight}, ours {ours}")
    print(f"ratio of medians {ratio:.3f} (at least {THROUGHPUT})")
    return ratio >= THROUGHPUT


async def _straight(config: Config, requests: Sequence[Request]) -> float:
    bodies = [request_body(r, model=config.actor.model, extra={}) for r in requests]
    began = time.perf_counter()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(900)) as session:

        async def post(body: dict[str, Any]) -> int:
            async with session.post(f"{config.actor.base_url}/chat/completions", json=body) as response:
                return (await response.json())["usage"]["completion_tokens"]

        tokens = sum(await gather(post(body) for body in bodies))
    return round(tokens / (time.perf_counter() - began), 1)


async def _ours(model: ChatModel, requests: Sequence[Request]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "calls.sqlite")
        recorded = RecordedModel(model, ledger)
        began = time.perf_counter()
        tokens = sum(c.completion_tokens for c in await gather(recorded.generate(r) for r in requests))
        seconds = time.perf_counter() - began
        ledger.close()
    return round(tokens / seconds, 1)


async def cache(config: Config, n: int) -> bool:
    """Prompt tokens from the prefix cache in training rollouts."""
    model = server(config)
    before = await _counters(config)
    await rollouts(config, model, n)
    after = await _counters(config)
    await model.close()
    queries, hits = (after[name] - before[name] for name in ("queries", "hits"))
    print(f"cache: {n} questions, G = 4: {hits:.0f} of {queries:.0f} prompt tokens cached, {hits / queries:.1%}")
    return hits / queries >= CACHED


async def _counters(config: Config) -> dict[str, float]:
    address = config.actor.base_url.removesuffix("/v1") + "/metrics"
    async with aiohttp.ClientSession() as session, session.get(address) as response:
        return {name: float(value) for name, value in COUNTER.findall(await response.text())}


async def critic(config: Config, n: int) -> bool:
    """Critic calls whose reply parses, over all questions and fresh rollouts of each until there are enough."""
    model = server(config)
    kept = Kept(model)
    team = team_of(config)
    groups = await rollouts(config, model, QUESTIONS, group_size=2)
    asked, reasons = 0, collections.Counter[str]()
    for number in range(-(-n // len(groups))):
        libraries = _libraries(team.empty_libraries(), number)
        caller = Caller(kept, config.critic_sampling, f"critic/{number}", fit=config.fit_replies)
        chosen = groups[: n - asked]
        feedbacks = await gather(GroupCritic(team)(one, libraries, caller) for one in chosen)
        asked += len(chosen)
        reasons.update(rejection.reason for feedback in feedbacks for rejection in feedback.rejections)
        print(f"critic: {asked} calls, rejections so far {dict(reasons)}", flush=True)
    await model.close()
    parsed = sum(_parses(completion.text) for _, completion in kept.calls)
    cut = sum(completion.finish_reason == "length" for _, completion in kept.calls)
    tokens = statistics.median(completion.completion_tokens for _, completion in kept.calls)
    print(f"critic: {parsed} of {len(kept.calls)} replies parse, {cut} cut off, median {tokens} tokens")
    return parsed / n >= PARSED


def _libraries(libraries: Libraries, number: int) -> Libraries:
    """Libraries of `number % 4` skills, so that calls differ."""
    for agent in libraries:
        for place in range(number % 4):
            skill = Skill(
                name=f"skill-{number}-{place}", description="When a question is asked.", id=f"{number}-{place}",
                body=f"Read sentence {number + place} twice and keep the answer short.", provenance="human",
            )  # fmt: skip
            libraries = {**libraries, agent: libraries[agent].with_skill(skill)}
    return libraries


def _parses(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


async def repeat(config: Config, n: int) -> bool:
    """The same rollouts whatever the concurrency and order."""
    seen = []
    for concurrency, step in ((1, 1), (4, 1), (16, 1), (16, -1)):
        model = server(config, concurrency)
        kept = Kept(model)
        await rollouts(config, kept, n, step=step)
        await model.close()
        seen.append({request.sample_id: completion.text for request, completion in kept.calls})
        print(f"repeat: {concurrency} at once: {len(seen[-1])} replies", flush=True)
    equal = [sum(one.get(key) == text for key, text in seen[0].items()) for one in seen]
    print(f"repeat: equal to those of one at a time: {equal} of {len(seen[0])}")
    return all(one == seen[0] for one in seen)


def main() -> int:
    """Measure; the exit status is 1 if a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["throughput", "cache", "critic", "repeat"])
    parser.add_argument("--profile", default="cpu")
    parser.add_argument("--benchmark", default="hotpotqa", choices=BENCHMARKS)
    parser.add_argument("--data", type=Path, help="the benchmark's file; the bundled one where none is given")
    parser.add_argument("--calls", type=int, default=200, help="critic calls (%(default)s)")
    options = parser.parse_args()
    config = load_config(options.profile, benchmark=options.benchmark, data_path=options.data, n_train=QUESTIONS)
    parts = {
        "throughput": lambda: throughput(config),
        "cache": lambda: cache(config, 6),
        "repeat": lambda: repeat(config, 2),
        "critic": lambda: critic(config, options.calls),
    }
    kept = [asyncio.run(part()) for name, part in parts.items() if options.part in (None, name)]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
