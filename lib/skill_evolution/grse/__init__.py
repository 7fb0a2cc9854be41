"""Group-relative skill evolution (paper 3): a team of language-model agents gets better by revising written skills.

Read in this order: `settings`, `rollouts`, `payload`, `critic`, `checks`, `feedback`, `aggregation`, `operators` (with
`leaks`), `gate`, `loop`; `maskills` is the baseline, which differs in its critic alone. Nothing here knows of profiles,
run folders or notebooks. With one's own questions, team and model (any `ChatModel`; `models.server.ServerModel` speaks
to an OpenAI-compatible endpoint):

>>> from skill_evolution.benchmarks.base import Question, QuestionSet
>>> from skill_evolution.grse import Settings, evolve
>>> from skill_evolution.teams import Role, Team
>>> from skill_evolution.testbed.reader import SimulatedReader
>>> born = {"Ada Moss": "Arlen", "Bo Lind": "Brask", "Cy Marsh": "Corvo", "Di Holt": "Delph", "Ed Frost": "Estby"}
>>> text = "[{0}:0] {0} paints harbours.\\n[{0}:1] {0} was born in {1} and left it early."
>>> questions = [
...     Question(name, f"In which town was {name} born?", town, "birthplace", text.format(name, town))
...     for name, town in born.items()
... ]
>>> splits = {"train": questions[:3], "validation": questions[3:], "test": ()}
>>> benchmark = QuestionSet("towns", splits, score=lambda question, answer: float(answer == question.answer))
>>> reader = Role("reader", "You pick the sentences that answer the question.", sees_context=True)
>>> team = Team("pair", (reader, Role("answerer", "You give the answer.", answers=True)))
>>> first, second = evolve(benchmark, team, SimulatedReader(), Settings(iterations=2))
>>> second.gate.assembled.mean > first.gate.base.mean, {a: len(skills) for a, skills in second.libraries.items()}
(True, {'reader': 0, 'answerer': 1})
"""

from skill_evolution.grse.critic import GroupCritic
from skill_evolution.grse.loop import Evolution, Iteration, Models, evolve
from skill_evolution.grse.settings import Settings

__all__ = ["Evolution", "GroupCritic", "Iteration", "Models", "Settings", "evolve"]
