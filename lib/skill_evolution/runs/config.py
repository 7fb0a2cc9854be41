"""The one configuration of a run: defaults are the paper's (FACTS A), profiles are YAML files, every field a flag.

A profile gives fields for all runs and, under `per_benchmark` and `per_method`, fields for some. Later ones win:
model defaults, profile, per_benchmark, per_method, overrides. `extends` names a profile that it adds to.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

from skill_evolution.base.profiles import mapping, merged, profile_path, read_profile
from skill_evolution.base.settings import ConfigError, check_keys, validated
from skill_evolution.benchmarks import BENCHMARKS
from skill_evolution.grse.settings import Settings
from skill_evolution.models.config import ModelConfig

SCHEMA_VERSION = 1
MethodName = Literal["grse", "maskills", "empty", "direct", "cot", "cot_sc", "self_refine", "full_context"]


class Config(Settings):
    """All that decides a run's results."""

    profile: str = "demo"
    """The profile this config was made from."""
    method: MethodName = "grse"
    """grse, maskills or empty (the team without skills); or of a single model, with the whole source in one message:
    direct, cot, cot_sc, self_refine, or full_context (LoCoMo)."""
    benchmark: str = "hotpotqa"
    """hotpotqa or locomo; or the name of one's own, which is then given to `train`."""
    data_path: Path | None = None
    """Benchmark file; null takes the bundled synthetic one."""
    category: str | None = None
    """Train and test on this category alone (LoCoMo: multi_hop, temporal, open_domain, single_hop); null is all."""
    n_train: int | None = Field(default=None, ge=1)
    """Training questions; null takes all of the split."""
    n_validation: int | None = Field(default=None, ge=1)
    """Validation questions; null takes all of the split."""
    n_test: int | None = Field(default=None, ge=1)
    """Test questions; null takes all of the split."""

    start_libraries: Path | None = None
    """Folder with one library folder an agent to start from; null starts empty (paper A)."""
    test_every_iteration: bool = False
    """Test after every iteration, not only after the last one (for curves of the test score; it decides nothing)."""

    actor: ModelConfig = ModelConfig()
    """The agents' model."""
    critic: ModelConfig = ModelConfig()
    """The critic's model."""
    optimizer: ModelConfig = ModelConfig()
    """The model that aggregates credits and writes skills."""

    @property
    def trained_on(self) -> str:
        """The category that the libraries are trained on, "all" where it is every one."""
        return self.category or "all"

    @property
    def label(self) -> str:
        """What a table or figure made from this run has to say: the models that its replies come from."""
        return " + ".join(dict.fromkeys(model.label for model in self.models))

    @property
    def models(self) -> tuple[ModelConfig, ModelConfig, ModelConfig]:
        """The three roles' models: actor, critic, optimizer."""
        return self.actor, self.critic, self.optimizer

    def deciding(self) -> dict[str, Any]:
        """Every field that decides results: not the profile's name, where files lie or how a server is reached."""
        servers = {name: {"base_url", "api_key_env", "max_concurrency", "timeout", "max_attempts"} for name in MODELS}
        return self.model_dump(
            mode="json", exclude={"profile": True, "data_path": True, "start_libraries": True, **servers}
        )


MODELS = ("actor", "critic", "optimizer")
METHODS: tuple[str, ...] = get_args(MethodName)


def profile_seeds(profile: str = "demo") -> list[int]:
    """The seeds of a profile's training runs: its `seeds`, else three, as many as the paper's runs (FACTS A).

    Raises:
        ConfigError: No such profile, or `seeds` is no list of integers from 0.
    """
    path = profile_path(profile)
    seeds = read_profile(path).get("seeds", [0, 1, 2])
    if not (isinstance(seeds, list) and seeds and all(type(seed) is int and seed >= 0 for seed in seeds)):
        raise ConfigError(f"{path}: seeds: expected a list of integers from 0, found {seeds!r}")
    return seeds


def _check_fields(values: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """ConfigError for an unknown key, also within a nested field."""
    check_keys(values, known, where=where)
    for name, value in values.items():
        field = Config.model_fields.get(name)
        if field and isinstance(field.default, BaseModel) and isinstance(value, Mapping):
            check_keys(value, type(field.default).model_fields, where=f"{where}: {name}")


def _flat(
    values: Any, where: str, fields: Iterable[str], chosen: Mapping[str, tuple[str, list[str]]]
) -> dict[str, Any]:
    """Fields with those of the chosen layers over them; all layers are checked."""
    flat = mapping(values, where)
    layers = {kind: mapping(flat.pop(kind, None), f"{where}: {kind}") for kind in chosen}
    _check_fields(flat, [*fields, *chosen], where)
    within = [n for n in Config.model_fields if n not in ("profile", "benchmark", "method")]  # a layer can't choose it
    for kind, (name, known) in chosen.items():
        check_keys(layers[kind], known, where=f"{where}: {kind}")
        inner = {key: _flat(part, f"{where}: {kind}.{key}", within, chosen) for key, part in layers[kind].items()}
        flat = merged(flat, inner.get(name, {}))
    return flat


def load_config(profile: str = "demo", **overrides: Any) -> Config:
    """The config of a profile with overrides; ConfigError names what is wrong and where."""
    _check_fields(overrides, Config.model_fields, "overrides")
    path = profile_path(profile)
    values = read_profile(path)
    values.pop("seeds", None)  # of the notebooks' runs (`profile_seeds`); a config has one
    chosen = {}
    for key, known in (("benchmark", BENCHMARKS), ("method", METHODS)):
        name = str({**values, **overrides}.get(key, Config.model_fields[key].default))
        chosen[f"per_{key}"] = name, [*known, name]  # the chosen benchmark may be the user's own
    values = _flat(values, str(path), Config.model_fields, chosen)
    return validated(Config, merged(values, overrides, {"profile": path.stem}), profile=profile)
