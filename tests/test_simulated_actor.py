"""The simulated reader as an acting agent: reply forms, what it may depend on, and what skills do to its answers."""

import asyncio
import functools
import json
import re
import string
import time
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, FileSystemLoader

from skill_evolution.models.base import Message, ModelError, Request, Sampling
from skill_evolution.models.simulated import SimulatedReader
from skill_evolution.models.simulated.directives import DIRECTIVES
from skill_evolution.paths import DEMO_DATA, PROMPTS

HELPFUL = [key for key, directive in DIRECTIVES.items() if directive.spontaneous > 0]
HARMFUL = [key for key, directive in DIRECTIVES.items() if directive.spontaneous == 0]
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop"}

# --- a small team runner of its own: the two agents in sequence, as the prompts lay them out ---

_PROMPTS = Environment(loader=FileSystemLoader(PROMPTS), trim_blocks=True, lstrip_blocks=True)
_READER = SimulatedReader()


@functools.cache
def _system(kind, keys):
    skills = [{"name": key.replace("_", "-"), "description": "A habit.", "body": DIRECTIVES[key].text} for key in keys]
    return _PROMPTS.get_template("agent_system.md.j2").render(
        role={
            "instructions": f"# Role: {kind}",
            "tools": ["grep"] * (kind == "searcher"),
            "answers": kind == "answerer",
        },
        skills=[s for s, key in zip(skills, keys, strict=True) if DIRECTIVES[key].kind == kind],
        limits={"grep_lines": 20, "grep_calls": 3, "handover_items": 6},
    )


def _user(question, context="", handed=()):
    handovers = [{"agent": "agent_1", "text": text} for text in handed]
    return _PROMPTS.get_template("agent_user.md.j2").render(question=question, context=context, handovers=handovers)


def call(messages, temperature: float | None = 0.0, sample_id="s"):
    request = Request(tuple(messages), Sampling(temperature=temperature), "actor", sample_id)
    try:  # the reader never waits, so one step runs it
        _READER.generate(request).send(None)
    except StopIteration as stop:
        return stop.value.text
    raise AssertionError("the simulated reader waited")


def tag(name: str, text: str) -> str:
    """What stands between the tags; "" where they are missing."""
    match = re.search(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)
    return match[1] if match else ""


def play(question, keys, *, context="", document=(), temperature: float | None = 0.0, sample_id="s"):
    """Evidence lines and answer of the two-agent team; the replies as well."""
    keys = tuple(keys)
    kind = "searcher" if document else "reader"
    messages = [Message("system", _system(kind, keys)), Message("user", _user(question, context))]
    replies = []
    while True:
        replies.append(call(messages, temperature, f"{sample_id}/1/{len(replies)}"))
        pattern = tag("grep", replies[-1])
        if not pattern:
            break
        assert len(replies) <= 3
        hits = [line for line in document if re.search(pattern, line, re.IGNORECASE)]
        result = _PROMPTS.get_template("grep_result.md.j2").render(
            lines=hits[:20], more=max(0, len(hits) - 20), left=3 - len(replies)
        )
        messages += [Message("assistant", replies[-1]), Message("user", result)]
    handed = tag("handover", replies[-1])
    last = [Message("system", _system("answerer", keys)), Message("user", _user(question, handed=[handed]))]
    replies.append(call(last, temperature, f"{sample_id}/2"))
    answer = tag("answer", replies[-1])
    return handed, "" if answer == "NO_ANSWER" else answer, replies


def f1(answer, gold):
    """Token F1 with HotpotQA's rule that yes and no have to match alone."""
    if {answer.lower(), gold.lower()} & {"yes", "no"}:
        return float(answer.lower() == gold.lower())
    a, g = (
        [word.strip(string.punctuation) for word in text.lower().split() if word not in ("a", "an", "the")]
        for text in (answer, gold)
    )
    common = sum((Counter(a) & Counter(g)).values())
    return 2 * common / (len(a) + len(g)) if common else 0.0


def score(category, answer, gold):
    if category != "multi_hop":
        return f1(answer, gold)
    parts = gold.split(",")
    return sum(max(f1(part, wanted) for part in answer.split(",")) for wanted in parts) / len(parts)


def document(item):
    conversation = item["conversation"]
    return tuple(
        f"[{turn['dia_id']}] ({conversation[f'session_{n}_date_time']}) {turn['speaker']}: {turn['text']}"
        + (f" [photo: {turn['blip_caption']}]" if "blip_caption" in turn else "")
        for n in range(1, 13)
        for turn in conversation[f"session_{n}"]
    )


@pytest.fixture(scope="module")
def cases():
    """(category, question, answer, what the team gets) of both demo files."""
    rows = []
    for record in json.loads((DEMO_DATA / "hotpotqa.json").read_text(encoding="utf-8")):
        passages = ["\n".join(f"[{t}:{i}] {s}" for i, s in enumerate(sentences)) for t, sentences in record["context"]]
        rows.append((record["type"], record["question"], record["answer"], {"context": "\n\n".join(passages)}))
    for item in json.loads((DEMO_DATA / "locomo.json").read_text(encoding="utf-8")):
        lines = document(item)
        rows += [
            (CATEGORIES[qa["category"]], qa["question"], qa["answer"], {"document": lines})
            for qa in item["qa"]
            if qa["category"] in CATEGORIES
        ]
    return rows


def evaluate(cases, keys, **options):
    scores = defaultdict(list)
    for number, (category, question, gold, given_to) in enumerate(cases):
        _, answer, _ = play(question, keys, sample_id=str(number), **given_to, **options)
        scores[category].append(score(category, answer, gold))
    return {category: sum(values) / len(values) for category, values in scores.items()}


def concerned(cases, key):
    """The cases that an agent with this directive works on."""
    part = {"searcher": "document", "reader": "context"}.get(DIRECTIVES[key].kind)
    return [case for case in cases if part is None or part in case[3]]


@pytest.fixture(scope="module")
def helpful(cases):
    return evaluate(cases, HELPFUL)


# --- levels ---


def test_empty_library_is_weak_and_helpful_skills_are_strong(cases, helpful):
    """A greedy reader shows a skill's behaviour on 88 % of the questions and an unasked one on 18 to 23 %.

    (Normal distribution function at logit(p) / SPREAD; p is 0.85 for a shown directive, 0.2 or 0.25 for most others.)
    Most questions take two behaviours (0.77 of them with skills, 0.04 without), a wrong or long answer still shares
    some words with the gold one, and up to 20 % of a category can't be had by rules on words (none of the comparisons,
    of which there are only 50).
    """
    empty = evaluate(cases, [])
    assert all(0.2 <= value <= 0.45 for value in empty.values()), empty
    assert all(0.6 <= value <= 0.9 for value in helpful.values()), helpful


@pytest.mark.parametrize("key", HARMFUL)
def test_a_harmful_skill_beside_all_helpful_ones_hurts_some_category(cases, helpful, key):
    worse = evaluate(concerned(cases, key), [*HELPFUL, key])
    drops = {category: helpful[category] - worse[category] for category in worse}
    assert max(drops.values()) >= 0.05, drops
    assert all(value > 0.2 for value in worse.values()), worse  # it leaves many questions untouched


@pytest.mark.parametrize("key", HELPFUL)
def test_each_helpful_skill_is_missed_by_some_category(cases, helpful, key):
    without = evaluate(concerned(cases, key), [other for other in HELPFUL if other != key])
    assert max(helpful[category] - without[category] for category in without) >= 0.05


def test_rollouts_of_one_question_differ_at_the_default_temperature(cases):
    mixed = 0
    for category, question, gold, given_to in cases[:40]:
        rewards = {
            score(category, play(question, ["follow_bridge"], sample_id=f"g{g}", temperature=None, **given_to)[1], gold)
            for g in range(4)
        }
        mixed += len(rewards) > 1
    assert mixed >= 15


# --- what it may depend on ---


def test_a_greedy_reader_differs_by_question_not_by_call(cases):
    """With a skill it overlooks it on some questions, without it does so unasked on some (policy.SPREAD)."""
    asked = [(question, given_to) for category, question, _, given_to in cases if category == "temporal"][:100]
    widened = {
        keys: [any(r"\[(" in reply for reply in play(question, keys, **given_to)[2]) for question, given_to in asked]
        for keys in ((), ("widen_adjacent",))
    }
    # expected shares where a first search hits anything: 18 % and 88 %
    assert 0.08 <= sum(widened[()]) / 100 <= 0.3
    assert 0.7 <= sum(widened["widen_adjacent",]) / 100 <= 0.96
    assert all(there or not unasked for unasked, there in zip(widened[()], widened["widen_adjacent",], strict=True))


def test_same_call_same_reply_and_purpose_is_ignored():
    messages = (
        Message("system", _system("answerer", ("shortest_span",))),
        Message("user", _user("Who is it?", handed=["[A:0] It is Ann Ray."])),
    )
    first = Request(messages, Sampling(), "actor/agent_2", "x")
    second = Request(messages, Sampling(), "critic", "x")
    one, two = asyncio.run(SimulatedReader().generate(first)), asyncio.run(SimulatedReader().generate(second))
    assert one == two


def test_greedy_replies_do_not_depend_on_the_sample_id(cases):
    for _, question, _, given_to in cases[::17]:
        replies = {tuple(play(question, ["quote_all"], sample_id=name, **given_to)[2]) for name in "abc"}
        assert len(replies) == 1


def test_an_unrecognised_skill_changes_no_answer(cases):
    system = _system("answerer", ()).replace(
        "You have no skills yet.",
        '<skill name="tidy">\nTidy work.\n\nWrite neatly and stay polite.\n</skill>',
    )
    user = _user("In which town was Ann Ray born?", handed=["[Ann Ray:1] Ann Ray was born in Eskham."])
    for sample in range(20):
        plain = call([Message("system", _system("answerer", ())), Message("user", user)], None, str(sample))
        shown = call([Message("system", system), Message("user", user)], None, str(sample))
        assert tag("answer", plain) == tag("answer", shown)
        assert tag("skills_used", shown) in ("tidy", "none")


def test_effect_belongs_to_the_body_not_to_the_name():
    line = "[Ann Ray:1] After many years of travel Ann Ray was born in Eskham, they say."
    user = _user("In which town was Ann Ray born?", handed=[line])
    good, bad = DIRECTIVES["shortest_span"].text, DIRECTIVES["full_sentence"].text
    answers = {}
    for name, body in (("brevity", good), ("brevity", bad), ("verbosity", good)):
        skill = f'<skill name="{name}">\nHow to answer.\n\n{body}\n</skill>'
        system = _system("answerer", ()).replace("You have no skills yet.", skill)
        reply = call([Message("system", system), Message("user", user)])
        answers[name, body] = tag("answer", reply)
        assert tag("skills_used", reply) == name
    assert answers["brevity", good] == answers["verbosity", good] == "Eskham"
    assert len(answers["brevity", bad]) > 40


# --- reply forms ---


def test_handover_keeps_ids_and_limit(cases):
    for category, question, _, given_to in cases[::7]:
        handed, _, replies = play(question, HELPFUL, **given_to)
        lines = handed.splitlines()
        assert len(lines) <= 6
        source = given_to.get("document") or given_to["context"].splitlines()
        assert handed == "NO_EVIDENCE" or set(lines) <= set(source), category
        assert all(reply.endswith("</skills_used>") for reply in replies)


def test_widening_brings_the_reply_to_the_question_that_was_hit():
    answered = {"with": 0, "without": 0}
    for name in ("Ann", "Eva", "Ida", "Kim", "Liv", "Mia", "Nan", "Pia", "Rut", "Sue"):
        lines = (
            "[D3:7] (1:00 pm on 2 May, 2023) Ben: What is the puppy called?",
            f"[D3:8] (1:00 pm on 2 May, 2023) {name}: Pepper, after long debates.",
        )
        question = f"What is the puppy of {name} called?"
        handed, answer, replies = play(question, HELPFUL, document=lines)
        if len(replies) == 4:  # keyword, neighbours, hand-over, answer
            assert tag("grep", replies[1]) == r"\[(D3:(6|8))\]"
            assert handed.splitlines() == list(lines)
        answered["with"] += "Pepper" in answer
        answered["without"] += "Pepper" in play(question, [], document=lines)[1]
    assert answered["with"] >= 7
    assert answered["without"] <= 4


def test_nothing_found_is_declined():
    handed, answer, _ = play("What did Ann weld?", HELPFUL, document=("[D1:1] (1:00 pm on 2 May, 2023) Ann: Hello.",))
    assert (handed, answer) == ("NO_EVIDENCE", "")


def test_a_reader_in_the_middle_of_a_team_works_from_earlier_handovers():
    handed = (
        "[D1:1] (1:00 pm on 2 May, 2023) Ann: I bought a kayak.\n[D1:2] (1:00 pm on 2 May, 2023) Ben: Good morning."
    )
    reply = call(
        [Message("system", _system("reader", ())), Message("user", _user("What did Ann buy?", handed=[handed]))]
    )
    assert tag("handover", reply).splitlines()[0] == handed.splitlines()[0]


@pytest.mark.parametrize("roles", [(), ("user",), ("user", "assistant"), ("system",), ("system", "user", "assistant")])
def test_messages_without_system_or_user_are_an_error(roles):
    with pytest.raises(ModelError, match="system message"):
        call([Message(role, "text") for role in roles])


def test_unknown_task_names_the_known_ones():
    with pytest.raises(ModelError, match="unknown task 'Sing'"):
        call([Message("system", "# Task: Sing\n"), Message("user", "la")])


def test_a_reply_beyond_max_tokens_is_cut_and_marked():
    messages = (
        Message("system", _system("answerer", ("full_sentence",))),
        Message("user", _user("Who?", handed=["[A:0] It is Ann Ray."])),
    )
    completion = asyncio.run(SimulatedReader().generate(Request(messages, Sampling(0.0, max_tokens=4), "p", "s")))
    assert (len(completion.text), completion.finish_reason, completion.completion_tokens) == (16, "length", 4)


@given(st.text(), st.text(), st.text())
def test_any_text_gets_a_reply_in_form(question, context, handed):
    for kind, form in (("reader", "handover"), ("answerer", "answer"), ("searcher", "grep")):
        reply = call(
            [Message("system", _system(kind, tuple(HELPFUL))), Message("user", _user(question, context, [handed]))]
        )
        assert f"<{form}>" in reply
        if form == "grep":
            re.compile(tag(form, reply))


def test_mean_time_of_a_call(cases):
    calls = 0
    start = time.perf_counter()
    for number, (_, question, _, given_to) in enumerate(cases[::6]):
        calls += len(play(question, HELPFUL, sample_id=str(number), temperature=None, **given_to)[2])
    assert (time.perf_counter() - start) / calls < 0.02  # about 0.1 ms where measured; the bound only catches blunders
