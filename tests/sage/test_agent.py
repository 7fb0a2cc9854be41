from dataclasses import replace
from typing import Any

import pytest
from scripted import END, MODEL, USER, FakeWorld, ScriptedPolicy, block, says, skill, task

from skill_evolution.sage.agent.code_skills import CodeSkill
from skill_evolution.sage.agent.episode import Episode, Sample, run_task
from skill_evolution.sage.agent.prompt import find_code, messages, observation, shorten
from skill_evolution.sage.agent.world import Execution
from skill_evolution.sage.config import AgentConfig

DONE = block("score(1.0)\ncomplete_task()")


async def solve(
    policy: ScriptedPolicy, world: FakeWorld | None = None, *, skills: list[CodeSkill] | None = None, **agent: Any
) -> Episode:
    config = AgentConfig(**{"layout": "compact", **agent})
    return await run_task(policy, world or FakeWorld(), task(), config, skills=skills or [], key="k", temperature=1.0)


def encoded(text: str) -> tuple[int, ...]:
    return (USER, *text.encode(), MODEL)


# Turns


async def test_over_three_turns_the_policy_is_fed_what_it_sampled_and_the_observations():
    turns = [block("print('one')"), block("1 / 0"), DONE]
    policy = says(*turns)
    episode = await solve(policy)
    sampled = [(*turn.encode(), END) for turn in turns]
    prompt = encoded("Pay Ann 5 dollars")
    one, error = encoded("one"), encoded("ZeroDivisionError: division by zero")
    assert policy.fed == {
        "k/0": prompt,
        "k/1": prompt + sampled[0] + one,
        "k/2": prompt + sampled[0] + one + sampled[1] + error,
    }
    assert episode.prompt_ids == prompt
    assert episode.completion_ids == sampled[0] + one + sampled[1] + error + sampled[2]
    masks = [(1,) * len(sampled[0]), (0,) * len(one), (1,) * len(sampled[1]), (0,) * len(error), (1,) * len(sampled[2])]
    assert episode.env_mask == tuple(bit for mask in masks for bit in mask)
    logprobs = [tuple(-(i + 1) / 8 for i in range(len(ids))) for ids in sampled]
    zeros = (0.0,) * len(one), (0.0,) * len(error)
    assert episode.logprobs == logprobs[0] + zeros[0] + logprobs[1] + zeros[1] + logprobs[2]
    assert (episode.ended, episode.success, episode.steps, episode.cut) == ("completed", True, 3, False)
    assert episode.sampled_tokens == sum(map(len, sampled)) == sum(episode.env_mask)


async def test_names_stay_and_errors_are_observations():
    world = FakeWorld()
    episode = await solve(says(block("x = 2\nboom"), block("print(x + 1)"), DONE), world)
    executions = [turn.execution for turn in episode.turns]
    assert [e.error for e in executions if e] == ["NameError: name 'boom' is not defined", None, None]
    assert executions[1] == Execution("3\n", None, 0, False)
    assert world.sessions[0].closed == 1


async def test_the_turn_limit_ends_it_and_the_last_observation_is_not_appended():
    policy = says(*[block("score(0.5)\nprint('seen')")] * 3)
    episode = await solve(policy, turns=2)
    assert (episode.ended, episode.steps, episode.completed, episode.score) == ("turns", 2, False, 0.5)
    assert episode.completion_ids[-1] == END
    assert episode.env_mask[-1] == 1
    assert episode.completion_ids.count(USER) == 1  # between the two turns, none after them
    assert not episode.success


async def test_no_code_ends_the_task_also_after_turns_with_code():
    episode = await solve(says(block("score(1.0)"), "I am done.", DONE))
    assert (episode.ended, episode.no_code, episode.steps, episode.score, episode.success) == (
        "no_code",
        True,
        2,
        1.0,
        False,
    )


@pytest.mark.parametrize(
    "text", ["", "```python\n```", "```python\n \n```", "``` \nx = 1\n```", "x = 1", "```json\n1\n```"]
)
async def test_what_is_no_code(text: str):
    episode = await solve(says(text))
    assert (episode.ended, episode.turns[0].code, episode.turns[0].execution) == ("no_code", None, None)
    assert episode.completion_ids == (*text.encode(), END)


async def test_an_empty_completion_without_an_end_token():
    class Mute(ScriptedPolicy):
        async def sample(self, ids, *, key, sampling):
            return Sample((), (), "", cut=False)

    episode = await solve(Mute(lambda key: ""))
    assert (episode.completion_ids, episode.env_mask, episode.logprobs) == ((), (), ())
    assert (episode.no_code, episode.error) == (True, None)


async def test_completing_ends_it_whatever_the_score():
    episode = await solve(says(block("score(0.5)\ncomplete_task()"), DONE))
    assert (episode.ended, episode.steps, episode.completed, episode.success) == ("completed", 1, True, False)


# Limits


async def test_tokens_per_turn_limit():
    policy = says(DONE)
    await solve(policy, tokens_per_turn=100)
    assert policy.max_tokens == {"k/0": 100}


async def test_a_sample_cut_in_its_code_is_told_so_and_nothing_of_it_runs():
    world = FakeWorld()
    long = "```python\nscore(0.25)\n" + "# " * 100
    policy = says(long, DONE)
    episode = await solve(policy, world, tokens_per_turn=60)
    assert world.sessions[0].executed == ["score(1.0)\ncomplete_task()"]
    assert (episode.steps, episode.cut, episode.success) == (2, True, True)
    # the end token that the sample lacks belongs to the observation: it wasn't sampled
    assert policy.fed["k/1"] == episode.prompt_ids + tuple(long.encode()[:60]) + (END, *encoded("cut"))
    assert episode.env_mask[:60] == (1,) * 60
    assert episode.env_mask[60:66] == (0,) * 6


async def test_a_sample_cut_after_a_whole_block_runs_that_block():
    world = FakeWorld()
    text = block("score(0.25)") + "\nand\n```python\nscore(1.0)\n" + "# " * 100
    await solve(says(text, DONE), world, tokens_per_turn=70)
    assert world.sessions[0].executed[0] == "score(0.25)"


async def test_a_sample_cut_before_any_code_is_one_without_code():
    episode = await solve(says("Let me think. " * 50, DONE), tokens_per_turn=60)
    assert (episode.ended, episode.cut, episode.sampled_tokens) == ("no_code", True, 60)


async def test_an_observation_that_does_not_fit_ends_it():
    policy = says(block("print('x' * 100)"), DONE)
    prompt, first = len(encoded("Pay Ann 5 dollars")), len(block("print('x' * 100)")) + 1
    episode = await solve(policy, context=prompt + first + 102)
    assert (episode.ended, episode.steps, len(episode.completion_ids)) == ("context", 1, first)
    policy = says(block("print('x' * 100)"), DONE)
    episode = await solve(policy, context=prompt + first + 103)
    assert policy.max_tokens["k/1"] == 1  # one more token just fits
    assert (episode.ended, len(episode.prompt_ids + episode.completion_ids)) == ("no_code", prompt + first + 103)


async def test_a_prompt_that_does_not_fit_ends_it_before_the_first_turn():
    episode = await solve(says(DONE), context=64, layout="full")
    assert (episode.ended, episode.steps, episode.completion_ids, episode.error) == ("context", 0, (), None)


# Skills


async def test_skills_are_loaded_first_and_what_fails_is_dropped_and_not_shown():
    world = FakeWorld()
    skills = [skill("import nowhere\ndef bad(): nowhere"), skill("def pay(n): score(n)"), skill("def idle(): pass")]
    policy = says(block("pay(1.0)\ncomplete_task()"))
    episode = await solve(policy, world, skills=skills)
    assert (episode.offered, episode.dropped, episode.used) == (("pay", "idle"), ("bad",), frozenset({"pay"}))
    assert policy.prompt("k") == "def pay(n): score(n)\ndef idle(): pass\nPay Ann 5 dollars"
    assert episode.success
    assert world.sessions[0].executed[:3] == [s.code for s in skills]


async def test_skills_of_all_turns_and_imports_of_earlier_ones():
    turns = [block("import re\nx = 1"), block("def broken(:"), block("def find(t): return re.search('a', t)"), DONE]
    episode = await solve(says(*turns))
    assert [one.code for one in episode.defined] == ["import re\ndef find(t): return re.search('a', t)"]
    assert episode.defined[0].task_id == "a_1"


async def test_a_skill_that_the_task_had_to_write_again_is_not_used():
    policy = says(block("pay(0)"), block("def pay(n): score(1.0)\npay(1)\ncomplete_task()"))
    episode = await solve(policy, skills=[skill("def pay(n): 1 / n")])
    assert (episode.success, episode.used, [s.name for s in episode.defined]) == (True, frozenset(), ["pay"])


async def test_skills_with_their_bodies_or_signatures():
    skills = [skill('import re\ndef pay(n):\n    """Pays."""\n    re')]
    policy = says(DONE)
    await solve(policy, skills=skills, bodies=False)
    assert policy.prompt("k") == "def pay(n)  # Pays.\nPay Ann 5 dollars"
    policy = says(DONE)
    await solve(policy, skills=skills, layout="full")
    assert f"```python\n{skills[0].code}\n```" in policy.prompt("k")


async def test_the_full_prompt_shows_overview_user_and_instruction():
    asked = replace(task(), user={"Name": "Bo", "Email": "b@o.x"})
    [message] = messages(AgentConfig(), FakeWorld(), asked, [])
    assert message["role"] == "user"
    for part in (FakeWorld.overview, "Name: Bo\nEmail: b@o.x\nPay Ann 5 dollars", "no skills yet", "```python"):
        assert part in message["content"]


# Failures


@pytest.mark.parametrize(
    ("turns", "error"),
    [
        ((block("print(1)"), block("crash()")), "WorldError: the server was killed"),
        ((block("print(1)"), RuntimeError("out of memory")), "RuntimeError: out of memory"),
    ],
)
async def test_a_failure_keeps_the_turns_so_far_and_closes_the_session(turns: tuple[str | Exception, ...], error: str):
    world = FakeWorld()
    episode = await solve(says(*turns), world)
    assert (episode.error, episode.ended, episode.score, episode.success) == (error, "error", 0.0, False)
    assert episode.turns[0].code == "print(1)"
    assert world.sessions[0].closed == 1
    assert len(episode.env_mask) == len(episode.completion_ids) == len(episode.logprobs)


async def test_a_world_that_does_not_open():
    episode = await solve(says(DONE), FakeWorld(unopenable="a_1"))
    assert (episode.error, episode.prompt_ids, episode.turns) == ("WorldError: can't open a_1", (), ())


async def test_a_session_that_does_not_close_costs_nothing(monkeypatch: pytest.MonkeyPatch):
    async def stuck(self: object) -> None:
        raise OSError("stuck")

    monkeypatch.setattr("scripted.FakeSession.close", stuck)
    episode = await solve(says(DONE))
    assert (episode.error, episode.success) == (None, True)


def test_a_samples_ids_and_logprobs_have_one_length():
    with pytest.raises(ValueError, match="2 ids and 1 logprobs"):
        Sample((1, 2), (0.0,), "", cut=False)


# Text


@pytest.mark.parametrize(
    ("text", "cut", "code", "unfinished"),
    [
        ("Think.\n```python\nx = 1\n```\nThen\n```py\ny = 2\n```", False, "x = 1\ny = 2", False),
        ("```Python \r\nx = 1\r\n```", False, "x = 1", False),
        ("```python\nx = 1", False, "x = 1", False),  # the model ended there
        ("```python\nx = 1", True, None, True),  # the limit did
        ("```python\nx = 1\n```", True, "x = 1", False),
        ("```python", True, None, True),
        ("```python\nx = 1\n```\n```python\ny", True, "x = 1", True),
        ("1. Do\n   ```python\n   if x:\n       y\n   ```", False, "if x:\n    y", False),
        ("```python\nx = '```'\n```", False, "x = '```'", False),
        ("```json\n{}\n```", False, None, False),
    ],
)
def test_the_code_of_a_turn(text: str, cut: bool, code: str | None, unfinished: bool):
    assert find_code(text, cut=cut) == (code, unfinished)


def test_a_long_output_loses_its_middle():
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghij", 5) == "abc\n[5 characters left out]\nij"


def test_observations():
    full, compact = AgentConfig(output_chars=9), AgentConfig(layout="compact", output_chars=9)
    assert observation(full, "a\n") == "Output:\n```\na\n```"
    assert observation(full, "") == "The code ran and printed nothing."
    assert observation(full, "", unfinished=7).startswith("Your reply was cut off after 7 tokens")
    assert observation(full, "a", unfinished=7).startswith("Output:\n```\na\n```\nYour reply was cut off")
    assert observation(compact, "a\n") == "a"
    assert observation(compact, "") == "ok"
