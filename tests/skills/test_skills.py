"""Skills, libraries and their folders; the Agent Skills reference validator (skills-ref) judges what is written."""

import json
import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import skills_ref
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skill_evolution.skills import (
    EditRecord,
    LibraryError,
    Skill,
    SkillLibrary,
    load_library,
    save_library,
    slug,
    storage,
)

RECORD = EditRecord("refine", 2, ("q17", "kept only one turn"), "When: old\n\nDo this.", "When: new\n\nDo that. 日")
QUOTE = Skill("quote-first", "When a fact is asked for.", "1. Search.\n2. Quote.", "s1", "refined", 0.1, 7, (RECORD,))
DATES = Skill("resolve-dates", "When a date is relative.", "Use the session's date.", "s2", utility=-0.25)
LIBRARY = SkillLibrary("agent_1", (QUOTE, DATES))

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
descriptions = words.filter(
    lambda text: text.strip() and "<skill" not in text.lower() and "</skill" not in text.lower()
)
names = st.text("ab1-", min_size=1, max_size=64).map(slug)
ids = words.filter(lambda text: text.strip() and text.isprintable())
records = st.builds(EditRecord, words, st.integers(0, 99), st.lists(words, max_size=2).map(tuple), words, words)
skills = st.builds(
    Skill,
    name=names,
    description=descriptions,
    body=descriptions,
    id=ids,
    provenance=st.sampled_from(["human", "induced", "refined", "consolidated"]),
    utility=st.floats(allow_nan=False, allow_infinity=False),
    invocations=st.integers(0, 10**9),
    history=st.lists(records, max_size=2).map(tuple),
)


def write(folder: Path, text: str | bytes, name: str = "quote-first") -> Path:
    """A hand-written SKILL.md in the library at `folder`."""
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# Skills and libraries


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Quote"}, "a-z"),
        ({"name": ""}, "a-z"),
        ({"name": "a--b"}, "a-z"),
        ({"name": "-a"}, "a-z"),
        ({"name": "a\n"}, "a-z"),
        ({"name": "a" * 65}, "64"),
        ({"name": "../a"}, "a-z"),
        ({"name": "none"}, "reserved"),
        ({"description": " \n"}, "0 characters"),
        ({"description": "d" * 1025}, "1025 characters"),
        ({"description": "as in <skill name='x'>"}, "description holds '<skill'"),
        ({"body": "\n \n"}, "body is empty"),
        ({"body": "end </SKILL> here"}, "body holds '</SKILL'"),
        ({"body": "half a pair \ud83d"}, "UTF-8"),
        ({"id": ""}, "id"),
        ({"id": "a\nb"}, "id"),
        ({"provenance": "model"}, "'model'.*human"),
        ({"utility": float("nan")}, "nan"),
        ({"invocations": -1}, "-1"),
    ],
)
def test_a_skill_that_breaks_a_rule_cannot_be_made(change, message):
    with pytest.raises(ValueError, match=message):
        replace(QUOTE, **change)


def test_a_skill_of_the_longest_name_and_description_can():
    assert len(replace(QUOTE, name="a" * 64, description="d" * 1024).description) == 1024


def test_text_is_brought_into_one_form():
    skill = Skill("a", " When \n\n a date\tis asked.\n", "\r\n \n    indented\r\n\r\nlast  \n\n", "s")
    assert skill.description == "When a date is asked."
    assert skill.body == "    indented\n\nlast"
    assert skill.text == "When a date is asked.\n\n    indented\n\nlast"


def test_an_edit_record_that_could_not_be_stored_cannot_be_made():
    with pytest.raises(ValueError, match="UTF-8"):
        replace(RECORD, evidence=("\udc00",))


def test_a_library_changes_by_id_and_keeps_its_order():
    renamed = replace(QUOTE, name="quote-lines")
    assert LIBRARY.with_skill(renamed).names() == ("quote-lines", "resolve-dates")
    assert LIBRARY.with_skill(replace(QUOTE, name="third", id="s3")).names() == (*LIBRARY.names(), "third")
    assert LIBRARY.without("quote-first").skills == (DATES,)
    assert LIBRARY.get("resolve-dates") is DATES
    assert LIBRARY.get("s2") is None
    assert (len(LIBRARY), list(LIBRARY)) == (2, [QUOTE, DATES])


def test_a_name_or_an_id_stands_once_in_a_library():
    with pytest.raises(ValueError, match="name 'quote-first' stands twice"):
        LIBRARY.with_skill(replace(DATES, name="quote-first"))
    with pytest.raises(ValueError, match=r"id 's1' stands twice .*'quote-first' and 'other'"):
        SkillLibrary("agent_1", (QUOTE, replace(QUOTE, name="other")))
    with pytest.raises(KeyError, match="no skill 'guard', only quote-first, resolve-dates"):
        LIBRARY.without("guard")


def test_the_fingerprint_is_that_of_what_a_prompt_shows():
    same = [replace(QUOTE, utility=0.9, invocations=0, history=(), id="x", provenance="human"), DATES]
    assert SkillLibrary("agent_2", tuple(same)).fingerprint == LIBRARY.fingerprint
    changed = [{"name": "n"}, {"description": "d"}, {"body": "b"}]
    others = [SkillLibrary("agent_1", (replace(QUOTE, **change), DATES)) for change in changed]
    others += [SkillLibrary("agent_1", (DATES, QUOTE)), SkillLibrary("agent_1", (QUOTE,)), SkillLibrary("agent_1")]
    assert len({LIBRARY.fingerprint, *(other.fingerprint for other in others)}) == 7


# Names from a model


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Quote first!", "quote-first"),
        ("../../etc/passwd", "etc-passwd"),
        ("..\\C:\\x", "c-x"),
        (" --Élan  vital-- ", "elan-vital"),
        ("日本", "skill"),
        ("", "skill"),
        ("None!", "none-2"),
        ("a" * 63 + " b", "a" * 63),
    ],
)
def test_slug(text, expected):
    assert slug(text) == expected


def test_slug_finds_a_free_name():
    assert slug("Quote", ["quote"]) == "quote-2"
    assert slug("Quote", ["quote", "quote-2", "quote-3"]) == "quote-4"
    assert slug("a" * 70, ["a" * 64]) == "a" * 62 + "-2"
    assert slug("a" * 61 + "-bc", ["a" * 61 + "-bc"]) == "a" * 61 + "-2"


@given(text=st.text(), rounds=st.integers(1, 12))
@example(text="x" * 61 + "-" + "y" * 9, rounds=12)
def test_slug_always_gives_a_new_valid_name(text, rounds):
    taken: set[str] = set()
    for _ in range(rounds):
        name = slug(text, taken)
        assert name not in taken
        assert skills_ref.validator.validate_metadata({"name": name, "description": "d"}, Path(name)) == []
        assert replace(QUOTE, name=name).name == name
        taken.add(name)


# On disk


def test_a_library_survives_save_and_load(tmp_path):
    save_library(LIBRARY, tmp_path / "agent_1")
    assert load_library(tmp_path / "agent_1", "agent_1") == LIBRARY
    assert sorted(os.listdir(tmp_path)) == ["agent_1"]
    assert sorted(os.listdir(tmp_path / "agent_1" / "quote-first")) == ["SKILL.md", "history.jsonl"]
    assert os.listdir(tmp_path / "agent_1" / "resolve-dates") == ["SKILL.md"]


def test_the_file_is_plain_front_matter_and_body(tmp_path):
    save_library(LIBRARY, tmp_path)
    assert (tmp_path / "quote-first" / "SKILL.md").read_text(encoding="utf-8") == (
        "---\nname: quote-first\ndescription: When a fact is asked for.\nmetadata:\n  id: s1\n  provenance: refined\n"
        "  utility: '0.1'\n  invocations: '7'\n  order: '0'\n---\n\n1. Search.\n2. Quote.\n"
    )
    lines = (tmp_path / "quote-first" / "history.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["evidence"] for line in lines] == [["q17", "kept only one turn"]]
    assert "日" in lines[0]


@pytest.mark.parametrize(
    "description",
    [
        "Use: when asked",
        "'single' and \"double\"",
        "# not a comment # here",
        "- leading dash",
        "a --- b ---- c",
        "---",
        "日本語 é 😀 \u202e",
        "yes",
        "0.50",
        "null",
        "2026-01-02",
        "{a: b}",
        "[x",
        "&a *b !c %d @e `f |g >h",
        "back\\slash \\n \\x2d",
        "bell \x07 nul \x00 \x7f \ufeff",
        "x: " + "long " * 200,
    ],
)
def test_an_awkward_description_survives(tmp_path, description):
    skill = replace(QUOTE, description=description)
    save_library(SkillLibrary("a", (skill,)), tmp_path)
    assert load_library(tmp_path, "a").skills == (skill,)
    assert skills_ref.validate(tmp_path / "quote-first") == []
    assert skills_ref.read_properties(tmp_path / "quote-first").description == skill.description


@pytest.mark.parametrize(
    "body", ["---\nrule", "a\n---\nb\n---\n\nc", "+++\nx\n+++", "    code", "{\n}", "name: x\n---"]
)
def test_an_awkward_body_survives(tmp_path, body):
    save_library(SkillLibrary("a", (replace(QUOTE, body=body),)), tmp_path)
    assert load_library(tmp_path, "a").skills[0].body == body


@settings(max_examples=60, deadline=None)
@given(made=st.lists(skills, max_size=3, unique_by=(lambda skill: skill.name, lambda skill: skill.id)))
def test_any_library_survives_and_is_valid(made):
    library = SkillLibrary("agent_1", tuple(made))
    with TemporaryDirectory() as folder:
        save_library(library, folder)
        assert load_library(folder, "agent_1") == library
        for skill in library:
            assert skills_ref.validate(Path(folder, skill.name)) == []
            properties = skills_ref.read_properties(Path(folder, skill.name))
            assert (properties.description, properties.metadata["id"]) == (skill.description.strip(), skill.id)


def test_a_description_stands_on_one_line(tmp_path):
    save_library(SkillLibrary("a", (replace(QUOTE, description="many words " * 90),)), tmp_path)
    lines = (tmp_path / "quote-first" / "SKILL.md").read_text(encoding="utf-8").splitlines()
    assert lines[2:4] == ["description: " + " ".join(["many words"] * 90), "metadata:"]


def test_the_order_of_skills_is_kept_and_hand_written_ones_come_last(tmp_path):
    many = SkillLibrary("a", tuple(replace(DATES, name=name, id=name) for name in "zkbcdefghija"))
    save_library(many, tmp_path)
    write(tmp_path, "---\nname: b2\ndescription: d\n---\nbody", "b2")
    write(tmp_path, "---\nname: a2\ndescription: d\n---\nbody", "a2")
    assert load_library(tmp_path, "a").names() == (*"zkbcdefghija", "a2", "b2")


def test_an_empty_library_is_an_empty_folder(tmp_path):
    save_library(LIBRARY, tmp_path / "agent_1")
    save_library(SkillLibrary("agent_1"), tmp_path / "agent_1")
    assert os.listdir(tmp_path / "agent_1") == []
    assert load_library(tmp_path / "agent_1", "agent_1") == SkillLibrary("agent_1")


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: quote-first\ndescription: When asked.\n---\n\n  Quote.\n\n---\nEnd.\n\n",
        "\ufeff---\r\nname: quote-first\r\ndescription: >\r\n  When\r\n  asked.\r\n---\r\n  Quote.\r\n\r\n---\r\nEnd.",
        "----\nname: 'quote-first'\ndescription: When asked. # so\nmetadata:\n----\n\n\n  Quote.\n\n---\nEnd.",
    ],
)
def test_a_hand_written_skill_loads(tmp_path, text):
    write(tmp_path, text)
    expected = Skill("quote-first", "When asked.", "  Quote.\n\n---\nEnd.", "quote-first", "human", 0.0, 0, ())
    assert load_library(tmp_path, "a").skills == (expected,)


def test_front_matter_is_text_as_in_the_reference_reader(tmp_path):
    write(tmp_path, "---\nname: 2026-01-02\ndescription: no\nmetadata:\n  id: 007\n---\nbody", "2026-01-02")
    skill = load_library(tmp_path, "a").skills[0]
    assert (skill.name, skill.description, skill.id) == ("2026-01-02", "no", "007")


HEAD = "---\nname: quote-first\ndescription: d\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Quote.", "must start with front matter"),
        ("", "must start with front matter"),
        ("---\nname: quote-first\n", "no closing line"),
        ("---\n---\nbody", '"key: value" lines'),
        ("---\n- name\n---\nbody", '"key: value" lines'),
        ("---\nname: quote-first\ndescription: a: b\n---\nbody", "not valid YAML.*\n?.*line 3"),
        ("---\nname: quote-first\ndescription: [a\n---\nbody", "not valid YAML"),
        ("---\nname: other\ndescription: d\n---\nbody", "name 'other' differs from the folder's name 'quote-first'"),
        ("---\ndescription: d\n---\nbody", "needs a text under 'name'"),
        ("---\nname: quote-first\n---\nbody", "needs a text under 'description'"),
        ("---\nname: quote-first\ndescription:\n---\nbody", "needs a text under 'description'"),
        ("---\nname: quote-first\ndescription: {a: b}\n---\nbody", "needs a text under 'description'"),
        ("---\nname: quote-first\nname: quote-first\ndescription: d\n---\nbody", "name more than once"),
        ("---\nname: quote-first\ndescription: " + "d" * 1025 + "\n---\nbody", "1025 characters"),
        (HEAD + "---\n\n", "body is empty"),
        (HEAD + "---\n</skill>", "body holds '</skill'"),
        (HEAD + "metadata: x\n---\nbody", "metadata must hold"),
        (HEAD + "metadata:\n  id: [a]\n---\nbody", "metadata must hold"),
        (HEAD + "metadata:\n  utility: high\n---\nbody", r"metadata.utility is 'high'; .*float"),
        (HEAD + "metadata:\n  invocations: '1.5'\n---\nbody", r"metadata.invocations is '1.5'; .*int"),
        (HEAD + "metadata:\n  provenance: model\n---\nbody", "provenance is 'model'"),
        (b"---\nname: quote-first\ndescription: caf\xe9\n---\nbody", "not UTF-8"),
    ],
)
def test_a_broken_skill_is_named_with_its_fault(tmp_path, text, message):
    save_library(SkillLibrary("a", (DATES,)), tmp_path)
    path = write(tmp_path, text)
    with pytest.raises(LibraryError, match=message) as error:
        load_library(tmp_path, "a")
    assert str(path) in str(error.value)


def test_a_name_that_is_too_long_is_named(tmp_path):
    path = write(tmp_path, f"---\nname: {'a' * 65}\ndescription: d\n---\nbody", "a" * 65)
    with pytest.raises(LibraryError, match=f"{path}.*1 to 64"):
        load_library(tmp_path, "a")


def test_a_doubled_id_is_named(tmp_path):
    save_library(LIBRARY, tmp_path)
    write(tmp_path, "---\nname: copy\ndescription: d\nmetadata:\n  id: s2\n---\nbody", "copy")
    with pytest.raises(LibraryError, match=f"{tmp_path}.*id 's2' stands twice .*'resolve-dates' and 'copy'"):
        load_library(tmp_path, "a")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"operator": "refine"', "line 2.*JSON"),
        ('{"operator": "refine", "iteration": 1, "evidence": [], "before": ""}', "line 2: after"),
        ('{"operator": "a", "iteration": 1, "evidence": [], "before": "", "after": "", "why": ""}', "line 2: why"),
        ('{"operator": "a", "iteration": "1", "evidence": [], "before": "", "after": ""}', "line 2: iteration"),
    ],
)
def test_a_broken_history_is_named_with_its_line(tmp_path, line, message):
    save_library(LIBRARY, tmp_path)
    path = tmp_path / "quote-first" / "history.jsonl"
    path.write_bytes(path.read_bytes() + line.encode() + b"\n")
    with pytest.raises(LibraryError, match=f"{path}, {message}"):
        load_library(tmp_path, "a")


def test_what_is_no_library_is_named(tmp_path):
    with pytest.raises(LibraryError, match="agent_9: is not a folder"):
        load_library(tmp_path / "agent_9", "agent_9")
    (tmp_path / "notes").mkdir()
    with pytest.raises(LibraryError, match=r"notes/SKILL.md: there is no such file"):
        load_library(tmp_path, "a")


def test_hidden_entries_are_ignored_on_loading_and_kept_on_saving(tmp_path):
    save_library(LIBRARY, tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("main", encoding="utf-8")
    (tmp_path / ".DS_Store").write_bytes(b"\x00")
    assert load_library(tmp_path, "agent_1") == LIBRARY
    save_library(LIBRARY.without("quote-first"), tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".DS_Store", ".git", "resolve-dates"]
    assert (tmp_path / ".git" / "HEAD").read_text(encoding="utf-8") == "main"


def test_what_a_skill_has_no_place_for_is_named(tmp_path, caplog):
    path = write(tmp_path, HEAD + "license: MIT\nmetadata:\n  author: me\n---\nbody")
    (path.parent / "notes.txt").touch()
    with caplog.at_level(logging.WARNING):
        load_library(tmp_path, "a")
    assert "license, metadata.author, notes.txt" in caplog.text
    assert str(path.parent) in caplog.text


@pytest.mark.parametrize("foreign", ["thesis.txt", "quote-first/scripts.py", "photos/one.png"])
def test_saving_never_replaces_what_is_not_a_library(tmp_path, foreign):
    save_library(LIBRARY, tmp_path)
    path = tmp_path / foreign
    path.parent.mkdir(exist_ok=True)
    path.touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(LibraryError, match=str(tmp_path / foreign.split("/")[0])):
        save_library(SkillLibrary("a"), tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_is_no_place_for_a_library(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(LibraryError, match="is not a folder"):
        save_library(LIBRARY, tmp_path / "a")


class Killed(BaseException):
    """Stands for the process dying at this point."""


def cut_off(monkeypatch, owner: object, name: str, at: int) -> None:
    """Let the call number `at` of a function die before it does anything."""
    original, calls = getattr(owner, name), iter(range(at + 1))

    def call(*args, **kwargs):
        if next(calls, at + 1) == at:
            raise Killed
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize(
    ("owner", "name", "at", "new"),
    [
        (Path, "write_bytes", 0, False),
        (Path, "write_bytes", 1, False),
        (Path, "rename", 0, False),
        (Path, "rename", 1, False),
        (storage.shutil, "rmtree", 2, True),
    ],
)
def test_a_save_that_is_cut_off_leaves_the_old_or_the_new_library(tmp_path, monkeypatch, owner, name, at, new):
    folder = tmp_path / "agent_1"
    save_library(LIBRARY, folder)
    (folder / ".keep").touch()
    changed = LIBRARY.with_skill(replace(DATES, body="Count from today."))
    with monkeypatch.context() as patch:
        cut_off(patch, owner, name, at)
        with pytest.raises(Killed):
            save_library(changed, folder)
    assert load_library(folder, "agent_1") == (changed if new else LIBRARY)
    save_library(changed, folder)
    assert load_library(folder, "agent_1") == changed
    assert os.listdir(tmp_path) == ["agent_1"]
    assert (folder / ".keep").exists()


def test_a_linked_folder_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "agent_1").symlink_to(tmp_path / "disk", target_is_directory=True)
    save_library(LIBRARY, tmp_path / "agent_1")
    assert (tmp_path / "agent_1").is_symlink()
    assert load_library(tmp_path / "disk", "agent_1") == LIBRARY


def test_a_copied_library_is_the_same(tmp_path):
    save_library(LIBRARY, tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert load_library(tmp_path / "two", "agent_1").fingerprint == LIBRARY.fingerprint
