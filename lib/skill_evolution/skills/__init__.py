"""Skills: what an agent is shown, the libraries that hold them, their folders on disk and anchored edits."""

from skill_evolution.skills.edits import Edit, EditError, apply_edits
from skill_evolution.skills.library import EditRecord, Provenance, Skill, SkillLibrary, slug
from skill_evolution.skills.storage import LibraryError, load_library, save_library

__all__ = [
    "Edit",
    "EditError",
    "EditRecord",
    "LibraryError",
    "Provenance",
    "Skill",
    "SkillLibrary",
    "apply_edits",
    "load_library",
    "save_library",
    "slug",
]
