import numpy as np
import pytest
from scripted import skill, task

from skill_evolution.sage import RETRIEVERS, CodeLibrary, CodeSkill
from skill_evolution.sage.agent.retrieval import QueryEmbedding, QueryNgram, SkillEmbedding, minilm

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


def test_query_ngram_takes_the_two_nearest_queries_over_the_threshold():
    query = task(9, "z", PAY)
    assert names(QueryNgram()(LIBRARY, query)) == "b1 b2 e1 e2"  # of the equals a and e the later one
    assert names(QueryNgram(queries=3)(LIBRARY, query)) == "a1 a2 b1 b2 e1 e2"
    assert names(QueryNgram(queries=9)(LIBRARY, query)) == "a1 a2 b1 b2 e1 e2"
    assert names(QueryNgram(queries=9, threshold=0.21)(LIBRARY, query)) == "a1 a2 b1 b2 c1 c2 e1 e2"
    assert names(QueryNgram(threshold=0.61)(LIBRARY, query)) == "b1 b2"


def test_short_and_empty_queries():
    library = CodeLibrary((skill("def f(): pass", task(1, "s", "Pay")), skill("def g(): pass", task(1, "t", "?!"))))
    assert names(QueryNgram()(library, task(2, "z", "pay"))) == "f"
    assert QueryNgram()(library, task(2, "z", "")) == []


def test_one_query_is_one_task_though_two_are_worded_alike():
    made = [skill(f"def f{n}(): pass", task(n, "s", PAY)) for n in (1, 2, 3)]
    assert names(QueryNgram()(CodeLibrary(tuple(made)), task(4, "s", PAY))) == "f2 f3"


def letters(text: str) -> np.ndarray:
    """A toy embedding: how often a, b, c and d occur, at length 1."""
    counts = np.array([text.count(letter) for letter in "abcd"]) + 1e-9
    return counts / np.linalg.norm(counts)


def test_query_embedding_takes_the_two_nearest_queries_over_the_threshold():
    texts = {"w": "aab", "x": "aaab", "y": "c", "z": "ab"}  # cosine with "a": .894, .949, 0, .707
    library = CodeLibrary(tuple(skill(f"def {s}(): pass", task(1, s, text)) for s, text in texts.items()))
    assert names(QueryEmbedding(embed=letters)(library, task(2, "q", "a"))) == "w x"
    assert names(QueryEmbedding(embed=letters, queries=4)(library, task(2, "q", "a"))) == "w x z"
    assert names(QueryEmbedding(embed=letters, threshold=0.9)(library, task(2, "q", "a"))) == "x"


def test_skill_embedding_takes_the_nearest_code():
    skills = tuple(skill(f"def s{i}(): {'a' * i + 'b' * (9 - i)}") for i in range(1, 9))
    library = CodeLibrary(skills)
    assert names(SkillEmbedding(embed=letters)(library, task(2, "q", "a"))) == "s3 s4 s5 s6 s7 s8"
    assert names(SkillEmbedding(embed=letters, skills=1)(library, task(2, "q", "b"))) == "s1"


@pytest.mark.parametrize("name", ["same_scenario", "query_ngram", "query_embedding", "skill_embedding"])
def test_an_empty_library_has_nothing(name: str):
    retriever = RETRIEVERS[name]
    if hasattr(retriever, "embed"):
        retriever = type(retriever)(embed=letters)  # pyright: ignore[reportCallIssue]
    assert retriever.name == name
    assert retriever(CodeLibrary(), task()) == []


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
    assert names(SkillEmbedding(skills=1)(library, query)) == "pay"
