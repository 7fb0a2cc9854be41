"""Conversations in LoCoMo's format between invented speakers, with questions of its five categories."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from skill_evolution.benchmarks.synthetic import smalltalk, talk, timeline
from skill_evolution.benchmarks.synthetic.pools import SPEAKERS, Names, endless

SAMPLE_IDS = (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)
SESSIONS = 12
MULTI_HOP, TEMPORAL, OPEN_DOMAIN, SINGLE_HOP, ADVERSARIAL = 1, 2, 3, 4, 5


@dataclass
class Exchange:
    """Neighbouring turns as (speaker, text); the first `gold` tell a fact (it, or a question and its answer)."""

    turns: list[tuple[str, str]]
    gold: int = 1
    dia_ids: list[str] = field(default_factory=list)


@dataclass
class Asked:
    """A question, with the exchanges that its answer rests on."""

    question: str
    answer: str
    category: int
    rests_on: list[Exchange]


@dataclass
class Draft:
    """A conversation being written: exchanges by session, questions so far, fresh names and slot fillers.

    `subject` is the position of the speaker about whom facts are told and asked; None while it can be either.
    """

    rng: random.Random
    names: Names
    speakers: tuple[str, str]
    days: list[Any]
    sessions: list[list[Exchange]] = field(default_factory=lambda: [[] for _ in range(SESSIONS)])
    asked: list[Asked] = field(default_factory=list)
    fillers: dict[str, Iterator[str]] = field(default_factory=dict)
    replies: list[str] = field(default_factory=list)
    subject: int | None = None

    def fill(self, pool: str) -> str:
        """A slot's next filler; none comes twice before its pool has run out."""
        if pool not in self.fillers:
            self.fillers[pool] = endless(self.rng, smalltalk.POOLS[pool])
        return next(self.fillers[pool])

    def pair(self) -> tuple[str, str]:
        """The one a question is about, and the other one; either of them while no subject is set."""
        first = self.rng.random() < 0.5 if self.subject is None else self.subject == 0
        return self.speakers if first else (self.speakers[1], self.speakers[0])

    def place(self, exchange: Exchange, low: int = 0, high: int = SESSIONS) -> int:
        """Puts an exchange into one of the emptier sessions from `low` to before `high`; returns which."""
        options = self.rng.sample(range(low, high), min(3, high - low))
        session = min(options, key=lambda number: len(self.sessions[number]))
        self.sessions[session].append(exchange)
        return session

    def told(self, speaker: str, other: str, text: str) -> Exchange:
        """A turn and the other speaker's remark on it."""
        self.replies = self.replies or self.rng.sample(smalltalk.REPLIES, len(smalltalk.REPLIES))
        return Exchange([(speaker, text), (other, self.replies.pop().format(s=speaker))])

    def fact(self, speaker: str, other: str, text: str) -> Exchange:
        """A turn that tells a fact, now and then with an opening."""
        return self.told(speaker, other, self.rng.choice(smalltalk.LEADS) + text)

    def echo(self, topic: str, session: int) -> None:
        """Often lets either speaker mention the topic of a fact again, mostly in a later session, without the fact."""
        later = self.rng.random() < 0.7
        low, high = (session + 1, SESSIONS) if later else (0, session)
        if not topic or low >= high or self.rng.random() < 0.35:
            return
        speaker, other = self.rng.sample(self.speakers, 2)
        self.place(self.told(speaker, other, self.rng.choice(smalltalk.ECHOES).format(k=topic)), low, high)

    def ask(self, question: str, answer: str, category: int, rests_on: list[Exchange]) -> None:
        """Adds a question."""
        self.asked.append(Asked(question, answer, category, rests_on))


def about(question: str, speaker: str) -> str:
    """A question about a speaker, with the fitting pronoun."""
    return question.format(S=speaker, P="her" if any(speaker == she for she, _ in SPEAKERS) else "his")


def _single_hop(draft: Draft) -> None:
    """Ten facts about the subject.

    Found by a keyword (one of them only by the question's shorter words), by stem, or not by a search for words; three
    in the reply to the turn that holds the keyword.
    """
    rng = draft.rng
    remote = 1 + (rng.random() < 0.5)
    told = rng.sample(talk.DIRECT, 3) + rng.sample(talk.LATER_WORD, 1) + rng.sample(talk.ADJACENT, 3)
    for fact in told + rng.sample(talk.INFLECTED, 3 - remote) + rng.sample(talk.REMOTE, remote):
        speaker, other = draft.pair()
        value = draft.fill(fact.pool)
        text = fact.turn.format(x=value)
        exchange = draft.fact(speaker, other, text)
        if fact.opening:
            exchange = Exchange([(other, fact.opening), (speaker, text)], gold=2)
        draft.echo(fact.topic, draft.place(exchange))
        draft.ask(about(fact.question, speaker), value, SINGLE_HOP, [exchange])


def _temporal(draft: Draft) -> None:
    """Ten times about the subject: three stated, three relative, two by another dated event, two plans in a reply."""
    rng = draft.rng
    anchors = rng.sample(talk.ANCHORS, 2)
    for number, (past, base, what) in enumerate(rng.sample(talk.EVENTS, 8)):
        speaker, other = draft.pair()
        exchange, rests_on = draft.fact(speaker, other, ""), []
        if number < 6:
            session = draft.place(exchange)
            when = (timeline.stated if number < 3 else timeline.past)(rng, draft.days[session])
        else:
            anchor = anchors[number - 6]
            earlier = draft.told(speaker, other, "")
            today = draft.days[draft.place(earlier, 0, SESSIONS // 2)]
            day = rng.choice((timeline.stated, timeline.days_ago))(rng, today)
            earlier.turns[0] = (speaker, f"I {anchor} {day.said}.")
            session = draft.place(exchange, SESSIONS // 2)
            words, shift = rng.choice(talk.AFTER)
            when = timeline.When(f"{words} I {anchor}", timeline.moved(day.gold, shift))
            rests_on = [earlier]
        lead, tail = exchange.turns[0][1], rng.choice(smalltalk.TAILS)
        exchange.turns[0] = (speaker, f"{lead}I {past} {what} {when.said}.{tail}")
        draft.echo(re.split(r"\b(?:the|my|an|from) ", what)[-1], session)
        asked = about(f"When did {{S}} {base} {what}?".replace(" my ", " {P} "), speaker)
        draft.ask(asked, when.gold, TEMPORAL, [*rests_on, exchange])
    for plan in rng.sample(talk.PLANS, 2):
        speaker, other = draft.pair()
        exchange = Exchange([], gold=2)
        when = timeline.coming(rng, draft.days[draft.place(exchange)])
        reply = f"Yes, {when.said}, if nothing gets in the way."
        exchange.turns += [(other, f"Do you know yet when you will {plan}?"), (speaker, reply)]
        draft.ask(f"When is {speaker} going to {plan}?", when.gold, TEMPORAL, [exchange])


def _multi_hop(draft: Draft) -> None:
    """Ten lists about the subject: two told in one turn, five over several sessions, three of things from places."""
    rng = draft.rng
    for number, items in enumerate(rng.sample(talk.LISTS, 7)):
        speaker, other = draft.pair()
        if number < 2:
            values = [draft.fill(items.pool), draft.fill(items.pool)]
            told = [items.both.format(x=values[0], y=values[1])]
        else:
            turns = rng.sample((*items.turns, items.plain), 3) if rng.random() < 0.5 else rng.sample(items.turns, 2)
            if len(turns) == 2 and rng.random() < 0.3:
                turns[-1] = items.plain
            values = [draft.fill(items.pool) for _ in turns]
            told = [turn.format(x=value) for turn, value in zip(turns, values, strict=True)]
        exchanges = [draft.fact(speaker, other, text) for text in told]
        _spread(draft, exchanges)
        draft.ask(about(items.question, speaker), ", ".join(values), MULTI_HOP, exchanges)
    places = rng.sample(talk.SOURCES, 9)
    for first in (0, 3, 6):
        speaker, other = draft.pair()
        chosen = places[first : first + 3]
        values = [draft.fill("gift") for _ in chosen]
        exchanges = [draft.fact(speaker, other, turn.format(x=v)) for (_, turn), v in zip(chosen, values, strict=True)]
        _spread(draft, exchanges)
        a, b, c = (f"the {name}" for name, _ in chosen)
        draft.ask(f"What did {speaker} bring home from {a}, {b} and {c}?", ", ".join(values), MULTI_HOP, exchanges)


def _spread(draft: Draft, exchanges: list[Exchange]) -> None:
    """Puts the exchanges into different sessions, in order."""
    cuts = sorted(draft.rng.sample(range(SESSIONS), len(exchanges)))
    for exchange, session in zip(exchanges, cuts, strict=True):
        draft.sessions[session].append(exchange)


def _open_domain(draft: Draft) -> None:
    """Ten inferences about the subject.

    Likely yes or no, the preferred one of two, and one or two that need knowledge of the world.
    """
    rng = draft.rng
    riddles = 1 + (rng.random() < 0.5)
    for topic, question, good, bad in rng.sample(talk.LIKELY, 6 - riddles):
        speaker, other = draft.pair()
        yes = rng.random() < 0.5
        exchange = draft.fact(speaker, other, good if yes else bad)
        draft.echo(topic, draft.place(exchange))
        draft.ask(question.format(S=speaker), "Likely yes" if yes else "Likely no", OPEN_DOMAIN, [exchange])
    for question, options, turn in rng.sample(talk.PREFERENCES, 4):
        speaker, other = draft.pair()
        value = rng.choice(options)
        exchange = draft.fact(speaker, other, turn.format(x=value))
        draft.place(exchange)
        draft.ask(question.format(S=speaker, a=options[0], b=options[1]), value, OPEN_DOMAIN, [exchange])
    for question, turn, answer in rng.sample(talk.RIDDLES, riddles):
        speaker, other = draft.pair()
        exchange = draft.fact(speaker, other, turn)
        draft.place(exchange)
        draft.ask(question.format(S=speaker), answer, OPEN_DOMAIN, [exchange])


def _chatter(draft: Draft, pattern: tuple[str, str]) -> Exchange:
    speaker, other = draft.pair()
    slots = {
        "n": draft.names.place(), "w": draft.rng.choice(smalltalk.WEATHERS), "u": draft.rng.choice(smalltalk.UTENSILS),
        "v": draft.rng.choice(smalltalk.DOGS), "s": speaker, "o": other,
    }  # fmt: skip
    return Exchange([(speaker, pattern[0].format(**slots)), (other, pattern[1].format(**slots))])


def _turns(draft: Draft, number: int, chatter: Iterator[tuple[str, str]]) -> list[dict[str, Any]]:
    """One session's turns: an opening, then the facts in random order between small talk.

    A few turns more than the facts take (about 22), and as many as a session of LoCoMo has: 10 to 47, 21.6 in the mean.
    """
    rng = draft.rng
    facts = rng.sample(draft.sessions[number], len(draft.sessions[number]))
    size = rng.randint(24, 32)
    while sum(len(exchange.turns) for exchange in facts) + 2 < size - 1:
        facts.insert(rng.randint(0, len(facts)), _chatter(draft, next(chatter)))
    turns: list[dict[str, Any]] = []
    for exchange in (_chatter(draft, rng.choice(smalltalk.OPENINGS)), *facts):
        for position, (speaker, text) in enumerate(exchange.turns):
            dia_id = f"D{number + 1}:{len(turns) + 1}"
            turns.append({"speaker": speaker, "dia_id": dia_id, "text": text})
            if position < exchange.gold:
                exchange.dia_ids.append(dia_id)
        if rng.random() < 0.12:
            _add_photo(draft, turns[-1])
    return turns


def _add_photo(draft: Draft, turn: dict[str, Any]) -> None:
    caption = draft.rng.choice(smalltalk.CAPTIONS).format(
        w=draft.rng.choice(smalltalk.WEATHERS), n=draft.names.place(), v=draft.rng.choice(smalltalk.DOGS)
    )
    turn["img_url"] = [f"https://example.org/photos/{turn['dia_id'].replace(':', '-')}.jpg"]
    turn["blip_caption"] = caption
    turn["query"] = " ".join(caption.split()[3:6])


def _conversation(rng: random.Random, number: int, speakers: tuple[str, str]) -> dict[str, Any]:
    draft = Draft(rng, Names(rng), speakers, timeline.session_days(rng, SESSIONS))
    for write in (_multi_hop, _temporal, _open_domain, _single_hop):
        for draft.subject in (0, 1):  # every category twice, once about each of the two
            write(draft)
    draft.subject = None
    chatter = endless(rng, smalltalk.CHATTER)
    conversation: dict[str, Any] = {"speaker_a": speakers[0], "speaker_b": speakers[1]}
    for index, day in enumerate(draft.days):
        conversation[f"session_{index + 1}_date_time"] = timeline.stamp(day, rng)
        conversation[f"session_{index + 1}"] = _turns(draft, index, chatter)
    return {
        "qa": [*(_record(asked) for asked in draft.asked), *_adversarial(draft)],
        "conversation": conversation,
        "event_summary": {},
        "observation": {},
        "session_summary": {},
        "sample_id": f"conv-{number}",
    }


def _record(asked: Asked) -> dict[str, Any]:
    evidence = [dia_id for exchange in asked.rests_on for dia_id in exchange.dia_ids]
    return {"question": asked.question, "answer": asked.answer, "evidence": evidence, "category": asked.category}


def _adversarial(draft: Draft) -> list[dict[str, Any]]:
    """Two single-hop questions asked about the wrong speaker, of whom nothing of the kind is told."""
    first, second = draft.speakers
    swap = {first: second, second: first, "her": "his", "his": "her"}
    told = {asked.question for asked in draft.asked}
    wrongs = [
        (asked, wrong)
        for asked in draft.asked
        if asked.category == SINGLE_HOP
        and (wrong := re.sub(r"\w+", lambda match: swap.get(match[0], match[0]), asked.question)) not in told
    ]
    records = []
    for asked, wrong in draft.rng.sample(wrongs, 2):
        record = _record(asked) | {"question": wrong, "category": ADVERSARIAL, "adversarial_answer": asked.answer}
        del record["answer"]
        records.append(record)
    return records


def conversations(rng: random.Random) -> list[dict[str, Any]]:
    """The ten conversations, in LoCoMo's order of sample ids."""
    return [_conversation(rng, number, pair) for number, pair in zip(SAMPLE_IDS, SPEAKERS, strict=True)]
