# pyright: reportMissingImports=false
"""Builds a small data folder for AppWorld: one user with a note app, a scenario of three tasks, and two faulty tasks.

    APPWORLD_ROOT=folder .venv-appworld/bin/python tests/helpers/appworld_data.py

Run by the slow tests, with AppWorld's interpreter, in a temporary folder. The tasks are ours; API docs and databases
come out of the installed package and stay in that folder, since AppWorld asks that its content isn't passed on in
plain text.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

DATE = "2024-02-29T09:30:00"
USER = {"first_name": "Mina", "last_name": "Okafor", "email": "mina@example.com", "phone_number": "5550001111"}
PROFILE = {**USER, "birthday": "1988-07-04", "sex": "female"}
PASSWORD = "a-secret-of-hers"

# Two tests; that nothing else has changed holds before any action.
NOTE_TESTS = [
    {"requirement": "The note that was asked for is there.", "label": "no_op_fail"},
    {"requirement": "Nothing but notes has changed.", "label": "no_op_pass"},
]
NOTE_EVALUATION = f"""
def evaluate(test, public_data, private_data, main_user, models, ground_truth_answer):
    with test({NOTE_TESTS[0]["requirement"]!r}):
        notes = [(note.title, note.content) for note in models.end.simple_note.Note.all()]
        test.case(notes, "==", [(private_data.title, private_data.content)])
    with test({NOTE_TESTS[1]["requirement"]!r}):
        changed = set(models.changed_model_names()) - {{"simple_note.Note"}}
        test.case({{name for name in changed if not name.startswith("supervisor.")}}, "==", set())
    return test
"""
NO_EVALUATION = "def evaluate(test, **_):\n    return test\n"


@dataclass(frozen=True)
class NoteTask:
    """A task that asks for a note; `apps` False leaves its databases out, `tests` False its tests."""

    task_id: str
    title: str
    content: str
    apps: bool = True
    tests: bool = True

    @property
    def instruction(self) -> str:
        return f'Write me a note with the title "{self.title}" that says "{self.content}".'


TASKS = {
    "train": [
        NoteTask("notes1_1", "Shopping", "rice and two lemons"),
        NoteTask("notes1_2", "Call", "Aunt Rosa on Friday"),
        NoteTask("notes1_3", "Keys", "blue drawer"),
    ],
    "dev": [
        NoteTask("faulty1_1", "None", "no tests", tests=False),
        NoteTask("faulty1_2", "None", "no databases", apps=False),
    ],
}


def write(path: Path, content: object) -> None:
    """A file with its folder: text as it is, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def write_api_docs(data: Path) -> dict:
    """The API docs of all apps but admin, made from the apps as installed."""
    from appworld.apps import get_all_apps
    from appworld.collections.api_docs import ApiDocCollection

    docs = ApiDocCollection.build(tuple(get_all_apps(skip_admin=True)))
    for app, app_docs in docs.items():
        # AppWorld takes this field off each when it reads them.
        write(
            data / f"api_docs/standard/{app}.json",
            {name: {**doc, "canary_string": ""} for name, doc in app_docs.items()},
        )
    return docs


def write_databases(data: Path, docs: dict) -> None:
    """Every app's base database: our user in the note app, her password, and the docs that agents look up."""
    from appworld.apps import get_all_apps
    from appworld.apps.api_lib import clear_local_dbs_cache, save_local_dbs, set_local_date_and_time, set_local_dbs
    from appworld.common.datetime import DateTime

    home = ":memory:base"
    clock = set_local_date_and_time(DateTime(2024, 2, 28, 8, 0, 0))
    set_local_dbs(to_db_home_path=home, create=True)
    from appworld.apps.admin.models import MainUser
    from appworld.apps.api_docs.models import ApiDoc
    from appworld.apps.simple_note.models import User
    from appworld.apps.supervisor.models import AccountPassword, Supervisor

    MainUser(**PROFILE).save()
    names = {key: USER[key] for key in ("first_name", "last_name", "email")}
    User(**names, password=PASSWORD, verified=True).save()
    supervisor = Supervisor(**PROFILE)
    supervisor.save()
    AccountPassword(supervisor_id=supervisor.id, account_name="simple_note", password=PASSWORD).save()
    fields = ("path", "method", "description", "parameters", "response_schemas")
    rows = ((app, name, doc) for app, app_docs in docs.items() for name, doc in app_docs.items())
    ApiDoc.save_all(
        [ApiDoc(app_name_=app, api_name=name, **{field: doc[field] for field in fields}) for app, name, doc in rows]
    )
    (data / "base_dbs").mkdir()
    save_local_dbs(home, str(data / "base_dbs"), format="full", app_names=get_all_apps(), delete_if_exists=True)
    clock.stop()
    clear_local_dbs_cache()


def write_task(data: Path, task: NoteTask) -> None:
    """One task's folder: what is asked, the databases' changes (an active task for the supervisor), and its tests."""
    from appworld.apps import get_all_apps
    from appworld.apps.supervisor.constants import NOT_GIVEN_ANSWER
    from appworld.common.constants import DB_VERSION

    folder = data / "tasks" / task.task_id
    specs = {"instruction": task.instruction, "supervisor": USER, "datetime": DATE, "db_version": DB_VERSION}
    write(folder / "specs.json", specs)
    for app in get_all_apps() if task.apps else []:
        write(folder / f"dbs/{app}.jsonl", "")
    if task.apps:
        statement = "INSERT INTO tasks (supervisor_id, instruction, status, answer, record_hash) VALUES (?, ?, ?, ?, ?)"
        values = [1, task.instruction, None, NOT_GIVEN_ANSWER, "-"]
        write(folder / "dbs/supervisor.jsonl", json.dumps([statement, values, False]) + "\n")
    counts = dict.fromkeys(("num_apps", "num_apis", "num_api_calls", "num_solution_code_lines"), 1)
    truth = folder / "ground_truth"
    write(truth / "metadata.json", {"difficulty": 1, "mode": "minimal", **counts})
    write(truth / "public_data.json", {})
    write(truth / "private_data.json", {"title": task.title, "content": task.content})
    write(truth / "answer.json", None)
    write(truth / "test_data.json", NOTE_TESTS if task.tests else [])
    write(truth / "evaluation.py", NOTE_EVALUATION if task.tests else NO_EVALUATION)


def main() -> None:
    """Write $APPWORLD_ROOT/data."""
    root = Path(os.environ["APPWORLD_ROOT"])
    data = root / "data"
    write_databases(data, write_api_docs(data))
    for split, tasks in TASKS.items():
        for task in tasks:
            write_task(data, task)
        write(data / f"datasets/{split}.txt", "\n".join(task.task_id for task in reversed(tasks)) + "\n")


if __name__ == "__main__":
    main()
