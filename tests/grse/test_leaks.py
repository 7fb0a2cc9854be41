"""Training answers and training text in written skills."""

import pytest
import toy

from skill_evolution.benchmarks.base import Question
from skill_evolution.grse.leaks import LeakCheck

STRETCH = "Melanie went to the pottery class on the second floor with her kids"


def asked(answer: str, text: str = "Who?", *, context: str = "", document: tuple[str, ...] = ()) -> Question:
    return Question("q", text, answer, "any", context=context, document=document, group="g")


@pytest.mark.parametrize(
    ("answer", "text", "leaks"),
    [
        ("Marie Curie", "Look for marie curie first.", True),
        ("Marie Curie", "Look for Marie-Curie.", True),  # the words stand in a row
        ("Marie Curie", "Look for Marie, then for Curie.", False),
        ("Jo", "Ask Jo.", True),
        ("Jo", "Look for the major job.", False),
        ("Jo", "look for jo", False),  # our choice: names in their own case
        ("music", "Music is a topic.", False),
        ("yes", "Answer Yes or no.", False),
        ("Yes", "Answer Yes or no.", False),
        ("2019", "In 2019 for instance.", True),
        ('"Inception"', "For instance Inception.", True),
        ("Turtles.", "Not Turtles but terns.", True),
        ("U2", "As with U2's tours", True),
        ("Zoë", "Ask Zoë!", True),
        ("", "Anything.", False),
        ("...", "Anything...", False),
        ("two years ago", "Say two years ago only if that is written.", True),
    ],
)
def test_answers(answer: str, text: str, leaks: bool):
    assert (LeakCheck([asked(answer)]).found(text) is not None) == leaks


@pytest.mark.parametrize("place", ["text", "context", "document"])
def test_eight_words_in_a_row_of_training_text(place: str):
    question = {
        "text": asked("x", STRETCH),
        "context": asked("x", context=STRETCH),
        "document": asked("x", document=("[D1:1] other line", f"[D1:2] {STRETCH}")),
    }[place]
    check = LeakCheck([toy.question(1), question])
    words = STRETCH.split()
    assert check.found("Note: " + " ".join(words[2:9]) + " ends.") is None  # seven words
    assert "8 words in a row" in (check.found("Note: " + " ".join(words[2:10]).upper() + ", ends.") or "")


def test_texts_of_two_lines_do_not_make_one_stretch():
    check = LeakCheck([asked("x", document=("one two three four", "five six seven eight"))])
    assert check.found("one two three four five six seven eight") is None


def test_documents_of_one_group_are_all_looked_at():
    check = LeakCheck([asked("x", document=(STRETCH,)), asked("x", document=("something else",))])
    assert check.found(STRETCH) is not None


def test_what_stood_there_before_is_not_the_new_texts_leak():
    check = LeakCheck([asked("Ann"), asked("Marie Curie"), asked("x", STRETCH)])
    assert check.found("Ask Ann about Marie Curie.", before="Ann knew Marie Curie.") is None
    assert check.found(f"{STRETCH}!", before=STRETCH) is None


@pytest.mark.parametrize("before", ["The Annual channel: Annie's.", "ann", "Marie. And Curie."])
def test_a_part_of_another_word_did_not_stand_there_before(before: str):
    check = LeakCheck([asked("Ann"), asked("Marie Curie")])
    assert check.found("Ask Ann.", before=before) == "holds the training answer 'Ann'"
    assert check.found("Ask Marie Curie.", before="Mariette or marie-anne curies") is not None
