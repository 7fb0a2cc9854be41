from typing import get_args

import numpy as np
import pytest
from scripted import skill, task

from skill_evolution.sage.agent import retrieval
from skill_evolution.sage.agent.code_skills import CodeLibrary, CodeSkill
from skill_evolution.sage.agent.retrieval import RETRIEVERS, minilm, query_embedding, query_ngram, skill_embedding
from skill_evolution.sage.config import Retrieval

PAY = "Pay Ann 5 dollars for lunch"
QUERIES = {  # Dice of word bigrams with PAY (pay ann, ann 5, 5 dollars, dollars for, for lunch), by hand
    "a": "Pay Bob 5 dollars for lunch",  # 3 of 5 and 5 shared: .6
    "b": "pay Ann 5 dollars, for LUNCH!",  # all: 1
    "c": "Play a song for lunch",  # 1 of 5 and 4: 2/9
    "d": "Pay Bob 7 dollars for dinner",  # dollars for: .2
    "e": "Send Ann 5 dollars for dinner",  # ann 5, 5 dollars, dollars for: .6
}
LIBRARY = CodeLibrary(tuple(skill(f"def {s}{i}(): pass", task(1, s, q)) for s, q in QUERIES.items() for i in (1, 2)))


def names(skills: list[CodeSkill]) -> str:
    return " ".join(found.name for found in skills)


def test_same_scenario():
    assert names(RETRIEVERS["same_scenario"](LIBRARY, task(3, "d"))) == "d1 d2"
    assert RETRIEVERS["same_scenario"](LIBRARY, task(3, "z")) == []


@pytest.mark.parametrize(
    ("queries", "least", "found"),
    [
        (2, 0.3, "b1 b2 e1 e2"),  # of the equals a and e the later one
        (3, 0.3, "a1 a2 b1 b2 e1 e2"),
        (9, 0.3, "a1 a2 b1 b2 e1 e2"),
        (9, 0.21, "a1 a2 b1 b2 c1 c2 e1 e2"),
        (2, 0.61, "b1 b2"),
    ],
)
def test_query_ngram_takes_the_nearest_queries_over_the_threshold(
    monkeypatch: pytest.MonkeyPatch, queries: int, least: float, found: str
):
    monkeypatch.setattr(retrieval, "QUERIES", queries)
    monkeypatch.setattr(retrieval, "LEAST_OVERLAP", least)
    assert names(query_ngram(LIBRARY, task(9, "z", PAY))) == found


def test_short_and_empty_queries():
    library = CodeLibrary((skill("def f(): pass", task(1, "s", "Pay")), skill("def g(): pass", task(1, "t", "?!"))))
    assert names(query_ngram(library, task(2, "z", "pay"))) == "f"
    assert query_ngram(library, task(2, "z", "")) == []


def test_one_query_is_one_task_though_two_are_worded_alike():
    made = [skill(f"def f{n}(): pass", task(n, "s", PAY)) for n in (1, 2, 3)]
    assert names(query_ngram(CodeLibrary(tuple(made)), task(4, "s", PAY))) == "f2 f3"


def letters(text: str) -> np.ndarray:
    """A toy embedding: how often a, b, c and d occur, at length 1."""
    counts = np.array([text.count(letter) for letter in "abcd"]) + 1e-9
    return counts / np.linalg.norm(counts)


@pytest.mark.parametrize(("queries", "least", "found"), [(2, 0.5, "w x"), (4, 0.5, "w x z"), (2, 0.9, "x")])
def test_query_embedding_takes_the_nearest_queries_over_the_threshold(
    monkeypatch: pytest.MonkeyPatch, queries: int, least: float, found: str
):
    monkeypatch.setattr(retrieval, "minilm", letters)
    monkeypatch.setattr(retrieval, "QUERIES", queries)
    monkeypatch.setattr(retrieval, "LEAST_COSINE", least)
    texts = {"w": "aab", "x": "aaab", "y": "c", "z": "ab"}  # cosine with "a": .894, .949, 0, .707
    library = CodeLibrary(tuple(skill(f"def {s}(): pass", task(1, s, text)) for s, text in texts.items()))
    assert names(query_embedding(library, task(2, "q", "a"))) == found


@pytest.mark.parametrize(("most", "query", "found"), [(6, "a", "s3 s4 s5 s6 s7 s8"), (1, "b", "s1")])
def test_skill_embedding_takes_the_nearest_code(monkeypatch: pytest.MonkeyPatch, most: int, query: str, found: str):
    monkeypatch.setattr(retrieval, "minilm", letters)
    monkeypatch.setattr(retrieval, "SKILLS", most)
    library = CodeLibrary(tuple(skill(f"def s{i}(): {'a' * i + 'b' * (9 - i)}") for i in range(1, 9)))
    assert names(skill_embedding(library, task(2, "q", query))) == found


@pytest.mark.parametrize("name", get_args(Retrieval))
def test_an_empty_library_has_nothing(monkeypatch: pytest.MonkeyPatch, name: Retrieval):
    monkeypatch.setattr(retrieval, "minilm", letters)
    assert RETRIEVERS[name](CodeLibrary(), task()) == []


@pytest.mark.slow
def test_the_packaged_model_tells_queries_apart():
    vector = minilm("Pay Ann for lunch")
    assert vector.shape == (384,)
    assert np.linalg.norm(vector) == pytest.approx(1)
    made = {
        "pay": ("Send money to a friend for dinner", 'def pay(name, amount):\n    """Send money to a friend."""'),
        "play": ("Play the newest song of an album", 'def play(album):\n    """Play the newest song of an album."""'),
    }
    library = CodeLibrary(tuple(skill(code, task(1, s, query)) for s, (query, code) in made.items()))
    query = task(2, "q", "Send some money to my friend Ann for lunch")
    assert names(RETRIEVERS["query_embedding"](library, query)) == "pay"
    assert names(skill_embedding(library, query)) == "pay play"
