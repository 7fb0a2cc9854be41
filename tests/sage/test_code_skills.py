import pytest
from scripted import skill, task

from skill_evolution.sage.agent.code_skills import CodeLibrary, extract_skills, used_skills

CODE = '''
import re
from datetime import date, timedelta as delta
import os.path
x = 1

def first(a, b=2, *, c: int = 3) -> int:
    """Adds.

    More.
    """
    # a comment
    return re.sub("a", "b", a) + delta(1)


async def later():
    pass

@cached
def decorated():
    pass

def runs(x=apis.bank.pay(1)):
    pass

def complete_task():
    pass

def print(x):
    pass

class C:
    def method(self):
        pass

if x:
    def inner():
        pass

def first_too(): return os.path.join("a")
first("a", 1)
'''


def names(code: str) -> list[str]:
    return [found.name for found in extract_skills(code, task())]


def test_top_level_functions_with_the_imports_that_they_mention():
    first, second = extract_skills(CODE, task(2, "s", "Do it"))
    assert (first.name, second.name) == ("first", "first_too")
    assert first.imports == ("import re", "from datetime import date, timedelta as delta")
    assert second.imports == ("import os.path",)
    assert first.source.startswith("def first(a, b=2")
    assert first.source.endswith("+ delta(1)")
    assert "# a comment" in first.source
    assert (first.task_id, first.scenario, first.instruction) == ("s_2", "s", "Do it")
    assert first.code.split("\n")[:3] == [*first.imports, "def first(a, b=2, *, c: int = 3) -> int:"]


def test_a_signature_is_one_line_with_the_docstrings_first():
    first, second = extract_skills(CODE, task())
    assert first.signature == "def first(a, b=2, *, c: int=3) -> int  # Adds."
    assert second.signature == "def first_too()"
    half = skill('def f():\n    "\\ud800 half a character"')
    assert half.signature == "def f()  # \\ud800 half a character"
    assert half.signature.encode()


def test_of_two_with_one_name_the_later_one_in_the_place_of_the_first():
    found = extract_skills("def f(): return 1\ndef g(): pass\ndef f(): return 2", task())
    assert [one.source for one in found] == ["def f(): return 2", "def g(): pass"]


@pytest.mark.parametrize(
    "code",
    ["def f(:", "def f(): pass\n1 +", "\0def f(): pass", "x = " + "(" * 5000, "x = " + "-" * 100_000 + "1", "\ud800"],
    ids=["syntax", "half", "null", "nested", "deep", "surrogate"],
)
def test_code_that_does_not_parse_gives_none_and_uses_none(code: str):
    assert names(code) == []
    assert used_skills(code + "\nf()", ["f"]) == frozenset()


def test_line_ends_of_another_system():
    assert extract_skills("import re\r\ndef f():\r\n    return re\r\n", task()) == [
        skill("import re\ndef f():\n    return re")
    ]


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("f(1)", {"f"}),
        ("x = [f(i) for i in g()]", {"f", "g"}),
        ("def mine():\n    return f(1)\nmine()", {"f"}),
        ("f", set()),  # not called
        ("apis.f()", set()),  # a method of that name
        ("h()", set()),  # no skill
        ("def f(): pass\nf()", set()),
        ("f()\ndef f(): pass", set()),
        ("def mine():\n    def f(): pass\n    f()\nmine()", set()),
        ("class f: pass\nf()", set()),
        ("from x import y as f\nf()", set()),
        ("f = lambda: 1\nf()", set()),
        ("f = f()", {"f"}),  # a result under the skill's name: the skill itself was called
        ("'f()'  # g()", set()),
    ],
)
def test_used_means_called_and_not_defined_by_the_code_itself(code: str, used: set[str]):
    assert used_skills(code, ["f", "g"]) == used


def test_the_same_name_overwrites_and_order_is_kept():
    f, g, new = skill("def f(): return 1"), skill("def g(): pass"), skill("def f(): return 2", task(2))
    library = CodeLibrary().with_([f, g])
    assert library.with_([new]).skills == (new, g)
    assert library.skills == (f, g)  # a value: nobody else's changes reach it
    assert library.without(["f"]).names == ("g",)
    assert len(library) == 2
