"""Code skills: the functions that an agent's code defines, the library that holds them, and which of them code uses.

Nothing here runs a skill: code is read with `ast`, and only a world's session executes it.
"""

import ast
import builtins
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from skill_evolution.sage.agent.world import Task

RESERVED = frozenset(dir(builtins)) | {"apis", "complete_task"}
"""Names that agent code calls anyway: a skill of that name would count as used in every task (our choice)."""
DOC_LENGTH = 120  # characters of a docstring that a signature shows


@dataclass(frozen=True)
class CodeSkill:
    """One function of an agent's code, with where it comes from.

    Attributes:
        name: The function's name.
        source: Its `def`, as it was written.
        imports: The top-level imports that it needs, one statement an entry.
        task_id: The task in which it was written.
        scenario: That task's scenario.
        instruction: That task's instruction.
    """

    name: str
    source: str
    imports: tuple[str, ...] = ()
    task_id: str = ""
    scenario: str = ""
    instruction: str = ""

    @property
    def code(self) -> str:
        """What is executed to load the skill: its imports and its source."""
        return "\n".join((*self.imports, self.source))

    @cached_property
    def signature(self) -> str:
        """One line, `def f(a, b)`, followed by the docstring's first line as a comment if there is one."""
        function = ast.parse(self.source).body[-1]
        assert isinstance(function, ast.FunctionDef)
        returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
        doc = (ast.get_docstring(function) or "").strip().splitlines()
        comment = f"  # {doc[0][:DOC_LENGTH]}" if doc else ""
        # An escape in a docstring can stand for half a character, which no tokenizer takes.
        line = f"def {self.name}({ast.unparse(function.args)}){returns}{comment}"
        return line.encode(errors="backslashreplace").decode()


def extract_skills(code: str, task: Task) -> list[CodeSkill]:
    """The skills that code defines: its top-level functions, in order; of two with one name the later one,
    in the place of the first.

    Only `def` counts: an `async def` can't be called as a plain function. What does more than define a function when
    it is loaded is left out, because every later task would do it again: decorated functions, and those with a call
    in a default value or annotation. So are functions named like something that agent code calls anyway (RESERVED).
    Of the code's top-level imports a skill keeps those whose names it mentions. Code that doesn't parse gives none.
    """
    tree = _parse(code)
    if tree is None:
        return []
    code = _unix(code)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    found: dict[str, CodeSkill] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _only_defines(node) and node.name not in RESERVED:
            source = ast.get_source_segment(code, node) or ast.unparse(node)
            skill = CodeSkill(node.name, source, _needed(imports, node), task.task_id, task.scenario, task.instruction)
            if _readable(skill):
                found[node.name] = skill
    return list(found.values())


def used_skills(code: str, names: Collection[str]) -> frozenset[str]:
    """Those of `names` that code calls by name and doesn't define itself (FACTS B, "skill used").

    A call inside a function of the code counts too. To define is to bind the name by `def`, `class`, an import or a
    lambda, anywhere in the code; a result assigned to the name of the skill that gave it is no definition. Code that
    doesn't parse uses none.
    """
    tree = _parse(code)
    nodes = list(ast.walk(tree)) if tree else []
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return frozenset(called & set(names) - {name for node in nodes for name in _defines(node)})


def parses(code: str) -> bool:
    """Whether code is Python; what isn't was never run."""
    return _parse(code) is not None


def _unix(code: str) -> str:
    return code.replace("\r\n", "\n").replace("\r", "\n")


def _parse(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the model's code, e.g. "\d" outside a raw string
        try:
            return ast.parse(_unix(code))
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deep
            return None


def _only_defines(function: ast.FunctionDef) -> bool:
    arguments = ast.walk(function.args)  # defaults and annotations
    header = [*arguments, *(ast.walk(function.returns) if function.returns else ())]
    return not function.decorator_list and not any(isinstance(node, ast.Call | ast.Await) for node in header)


def _needed(imports: Iterable[ast.Import | ast.ImportFrom], function: ast.FunctionDef) -> tuple[str, ...]:
    mentioned = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return tuple(
        ast.unparse(node) for node in imports if {"*"} & set(_defines(node)) or mentioned & set(_defines(node))
    )


def _readable(skill: CodeSkill) -> bool:
    """Whether the skill can be shown; a signature may nest too deep to be written out again."""
    try:
        return bool(skill.signature)
    except (RecursionError, MemoryError):
        return False


def _defines(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        case ast.Assign(value=ast.Lambda()):
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case _:
            return []


@dataclass(frozen=True)
class CodeLibrary:
    """The skills of one chain, ordered by when each name first came in; every change gives a new library."""

    skills: tuple[CodeSkill, ...] = ()

    def __iter__(self) -> Iterator[CodeSkill]:
        return iter(self.skills)

    def __len__(self) -> int:
        return len(self.skills)

    @property
    def names(self) -> tuple[str, ...]:
        """The skills' names, in order."""
        return tuple(skill.name for skill in self.skills)

    def with_(self, skills: Iterable[CodeSkill]) -> "CodeLibrary":
        """With these skills; one whose name is there takes the place of the older one (FACTS B, "skill")."""
        return CodeLibrary(tuple(({skill.name: skill for skill in self} | {s.name: s for s in skills}).values()))

    def without(self, names: Collection[str]) -> "CodeLibrary":
        """Without the skills of these names."""
        return CodeLibrary(tuple(skill for skill in self if skill.name not in names))
