"""Hand-made rollouts for the simulated critic, and the real critics over them."""

import asyncio
from typing import Any

from skill_evolution.benchmarks.base import Question
from skill_evolution.config import Config
from skill_evolution.critic import GroupCritic
from skill_evolution.feedback import Feedback
from skill_evolution.models.simulated import SimulatedReader
from skill_evolution.models.simulated.directives import DIRECTIVES
from skill_evolution.replies import Caller
from skill_evolution.rollouts import Group, Trajectory, advantages
from skill_evolution.skills import Skill, SkillLibrary
from skill_evolution.teams import Execution, Step, hotpotqa_team, locomo_team

LOCOMO, HOTPOTQA = locomo_team(), hotpotqa_team()
ASKS = "[D3:7] (1:00 pm on 2 May, 2023) Ben: What is the puppy called?"
TELLS = "[D3:8] (1:00 pm on 2 May, 2023) Ann: Pepper, after long debates."
PUPPY = Question("q1", "What is the puppy of Ann called?", "Pepper", "single_hop", group="conv-1")
WHEN = Question("q2", "When did Ann run the marathon?", "1 May 2023", "temporal", group="conv-1")
RAN = "[D3:2] (1:00 pm on 2 May, 2023) Ann: I ran the marathon yesterday."
MILL, BURNT = "[The Mill:0] The mill was built by Ann Ray.", "[The Mill:1] It burnt down."
BIRTH = "[Ann Ray:0] Ann Ray was born in Esk."
PASSAGES = f"{MILL}\n{BURNT}\n\n{BIRTH}"
BORN = Question(
    "q3",
    "Where was the builder of the mill born?",
    "Esk",
    "bridge",
    context=PASSAGES,
    evidence=("The Mill:0", "Ann Ray:0"),
)


class Recording(SimulatedReader):
    """The simulated reader, keeping requests and completions; may be given a shorter context."""

    def __init__(self, context_length=65_536):
        super().__init__()
        self.limit, self.calls = context_length, []

    @property
    def context_length(self):
        return self.limit

    async def generate(self, request):
        completion = await super().generate(request)
        self.calls.append((request, completion))
        return completion


def skill(name, *keys, body=""):
    """A skill that asks for these directives, and what `body` says."""
    return Skill(name, "A habit.", "\n".join([*(DIRECTIVES[key].text for key in keys), body]).strip(), f"id-{name}")


def search(*turns, handed="", answer: str | None = "", first=(), second=()):
    """A rollout of the LoCoMo team; `turns` are (pattern, lines found), `first` and `second` the skills used."""
    steps = []
    for pattern, found in turns:
        steps += [("agent_1", "call", f"<grep>{pattern}</grep>"), ("agent_1", "result", f"# Search result\n{found}")]
    return rollout(steps, handed, answer, first, second)


def read(handed, answer: str | None, first=(), second=()):
    """A rollout of the HotpotQA team."""
    return rollout([], handed, answer, first, second)


def rollout(steps, handed, answer, first, second):
    steps = [
        *steps,
        ("agent_1", "handover", f"<handover>{handed or 'NO_EVIDENCE'}</handover>"),
        ("agent_2", "answer", f"<answer>{answer or 'NO_ANSWER'}</answer>"),
    ]
    numbered = tuple(Step(i, *step) for i, step in enumerate(steps, start=1))
    return Execution(answer or None, numbered, {"agent_1": tuple(first), "agent_2": tuple(second)})


def group(question, *runs):
    """A group from (reward, execution) pairs."""
    trajectories = tuple(Trajectory(question, i, execution, reward) for i, (reward, execution) in enumerate(runs))
    return Group(question, trajectories, advantages([t.reward for t in trajectories]))


def libraries(first=(), second=()):
    """The two agents' libraries of these skills."""
    return {"agent_1": SkillLibrary("agent_1", tuple(first)), "agent_2": SkillLibrary("agent_2", tuple(second))}


def judge(team, group, libraries, *, critic: Any = GroupCritic, model: Any = None, **options) -> Feedback:
    """A critic's feedback on a group; nothing of its reply may be cut or rejected."""
    model = model or Recording()
    caller = Caller(model, Config().critic_sampling.sampling(), "critic")
    feedback = asyncio.run(critic(team, **options)(group, libraries, caller))
    assert feedback.rejections == ()
    assert all(completion.finish_reason == "stop" for _, completion in model.calls)
    return feedback


def values(feedback):
    """Credit values by agent and skill."""
    return {(credit.agent, credit.skill): credit.value for credit in feedback.credits}


def only_diagnosis(*args, **options):
    """Agent, failure type and suggestion of the one diagnosis that `judge` gives."""
    (diagnosis,) = judge(*args, **options).diagnoses
    return diagnosis.agent, diagnosis.failure_type, diagnosis.suggestion


GOOD = search(("puppy", ASKS), (r"\[(D3:(6|8))\]", TELLS), handed=f"{ASKS}\n{TELLS}", answer="Pepper")
MISSED = search(("puppy", ASKS), handed=ASKS, answer="")
