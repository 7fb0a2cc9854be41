"""What code tells of a rollout from the gold data, and cases with their names masked."""

import toy

from skill_evolution.benchmarks.base import Question
from skill_evolution.cases import Case, case_of, evidence_handed_over, facts, gold_lines, masked, unnamed, varied
from skill_evolution.leaks import LeakCheck
from skill_evolution.rollouts import Trajectory
from skill_evolution.teams import Execution, Step, hotpotqa_team

MILL, RAY = "[Esk Mill:0] The Esk Mill was built by Ann Ray.", "[Ann Ray:1] Ray was born in the town of Marlby in 1802."
PASSAGES = f"{MILL}\n[Esk Mill:1] It burnt down.\n\n[Ann Ray:0] She kept a diary.\n{RAY}"
BORN = Question(
    "q1", "In which town was the builder of the Esk Mill born?", "Marlby", "bridge", PASSAGES,
    evidence=("Ann Ray:1", "Esk Mill:0"),
)  # fmt: skip
READER, ANSWERER = hotpotqa_team().roles
COMMON = LeakCheck([BORN]).common


def rollout(handed: str, answer: str | None, question: Question = BORN) -> Trajectory:
    steps = (Step(1, "agent_1", "handover", handed), Step(2, "agent_2", "answer", f"<answer>{answer}</answer>"))
    return Trajectory(question, 0, Execution(answer, steps, {}), 0.0)


def test_gold_lines_come_in_the_order_of_the_source():
    assert gold_lines(BORN) == (MILL, RAY)
    assert gold_lines(toy.question(1)) == ()


def test_a_gold_line_counts_by_its_text_with_or_without_its_id():
    told = facts(rollout("The Esk Mill  was built by ann ray.", None))
    assert told == {"gold_lines_handed_over": "1 of 2", "gold_answer_handed_over": False, "declined": True}
    assert (
        facts(rollout("[Ann Ray:1] [Esk Mill:0]", "Esk"))["gold_lines_handed_over"] == "0 of 2"
    )  # ids alone say nothing


def test_a_yes_or_no_is_no_answer_that_could_be_handed_over():
    asked = Question("q", "Are both in Esk?", "no", "comparison", PASSAGES, evidence=("Esk Mill:0",))
    assert "gold_answer_handed_over" not in facts(rollout("There is no mill.", "no", asked))


def test_the_evidence_is_there_with_all_lines_or_with_the_answer():
    assert evidence_handed_over(rollout(f"{MILL}\n{RAY}", None))
    assert evidence_handed_over(rollout("born in Marlby", None))
    assert not evidence_handed_over(rollout(MILL, None))


def test_a_case_shows_what_would_have_been_right_for_the_agent_and_no_name():
    reader, answerer = (case_of(role, rollout("Mill, Marlby", "Esk Mill"), COMMON) for role in (READER, ANSWERER))
    assert reader
    assert answerer
    assert reader.example() == (
        "Question: In which town was the builder of the B born?\n<handover>\n[B:0] The B was built by C.\n"
        "[C:1] C was born in the town of D in E.\n</handover>"
    )
    assert answerer.right == "<answer>D</answer>"
    assert answerer.given.startswith("Handed over:\n[B:0] The B was built by C.")
    assert answerer.did == "<answer>B</answer>"
    assert not LeakCheck([BORN]).answer(reader.example() + answerer.example())


def test_without_gold_lines_or_a_step_there_is_no_case():
    assert case_of(READER, rollout("x", None, toy.question(1)), COMMON) is None
    assert case_of(READER, Trajectory(BORN, 0, error="down"), COMMON) is None


def test_ids_and_times_of_a_conversation_stay_and_the_answer_goes_wherever_it_stands():
    line = "[D4:9] (11:50 pm on 8 May, 2023) Ann: My craft is bookbinding."
    text, answer = masked([line, "bookbinding"], frozenset(("my",)), answer="bookbinding")
    assert text.startswith("[D4:9] (11:50 pm on ")
    assert answer in text
    assert not any(name in text for name in ("Ann", "May", "2023", "bookbinding"))


def test_a_text_about_a_question_loses_its_names_and_answer_and_nothing_else():
    assert unnamed("Look for Ray in the lines of Esk Mill: Marlby stands there.", BORN) == (
        "Look for C in the lines of B: D stands there."
    )
    assert unnamed("Fetch the turns next to a hit.", BORN) == "Fetch the turns next to a hit."


def test_unlike_questions_come_first():
    cases = [Case(text, "", "", "") for text in ("who wrote the B", "who wrote the C", "are B and C alike")]
    assert [case.question for case in varied(cases)] == ["who wrote the B", "are B and C alike", "who wrote the C"]
