"""The one configuration of a run: defaults are the paper's (FACTS A), profiles are YAML files, every field a flag.

A profile gives fields for all runs and, under `per_benchmark` and `per_method`, fields for some. Later ones win:
model defaults, profile, per_benchmark, per_method, overrides. `extends` names a profile that it adds to.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from skill_evolution import paths
from skill_evolution.benchmarks import BENCHMARKS
from skill_evolution.models.base import Sampling

SCHEMA_VERSION = 1
MethodName = Literal["grse", "maskills", "empty", "direct", "cot", "cot_sc", "self_refine", "full_context"]


class ConfigError(ValueError):
    """A configuration that can't be used; names the key or value at fault and what would be right."""


def check_keys(values: Iterable[str], known: Iterable[str], *, where: str) -> None:
    """ConfigError for the first key that is not known, naming the nearest one that is."""
    names = list(known)
    for key in values:
        if key not in names:
            near = difflib.get_close_matches(str(key), names, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(names))}"
            raise ConfigError(f"{where}: unknown key {key!r}{hint}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_and_whole(cls, values: Any) -> Any:
        """Unknown keys raise; a part of a nested field changes that part of its default and leaves the rest."""
        if not isinstance(values, Mapping):
            return values
        check_keys(values, cls.model_fields, where=cls.__name__)
        defaults = {name: field.default for name, field in cls.model_fields.items()}
        return {
            name: {**default.model_dump(), **value}
            if isinstance(value, Mapping) and isinstance(default := defaults[name], BaseModel)
            else value
            for name, value in values.items()
        }


class SamplingConfig(_Strict):
    """How completions are drawn; null leaves a setting to the model's default."""

    temperature: float | None = Field(default=None, ge=0)
    """0 is greedy."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest completion, in tokens."""

    def sampling(self) -> Sampling:
        """The same as the models' dataclass."""
        return Sampling(self.temperature, self.top_p, self.max_tokens)


class ServeConfig(_Strict):
    """How vLLM is started for a model where it isn't running yet (models/serve.py)."""

    weights: str | None = None
    """What is loaded: a folder, a name that vLLM downloads, or "qwen2.5-coder-1.5b-instruct", which is made from
    packages of the index (models/qwen.py); null is the model's own name."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Number format; float32 gives the same replies whatever the batch, bfloat16 needn't."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share the model."""
    arguments: list[str] = []
    """Further arguments of vLLM's server."""


class ModelConfig(_Strict):
    """Which model a role of the method uses."""

    kind: Literal["simulated", "server"] = "simulated"
    """The simulated reader, or an OpenAI-compatible server."""
    model: str = "simulated-reader-1"
    """Model name, as the server knows it."""
    base_url: str = "http://127.0.0.1:8000/v1"
    """Address of the server (kind "server")."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key itself stands in no file."""
    max_concurrency: int = Field(default=64, ge=1)
    """Calls under way at once, over all purposes."""
    timeout: float = Field(default=600.0, gt=0)
    """Longest wait for one attempt, in seconds."""
    max_attempts: int = Field(default=5, ge=1)
    """Attempts before a call counts as failed."""
    context_length: int | None = Field(default=None, ge=256)
    """Longest prompt plus completion in tokens; null asks the server."""
    extra: dict[str, Any] = {}
    """Further fields of the request's body, e.g. to switch thinking off."""
    serve: ServeConfig | None = None
    """How to start the server (kind "server") where it isn't running; null leaves that to you."""

    @model_validator(mode="after")
    def _server_has_model(self) -> "ModelConfig":
        if self.kind == "server" and self.model == type(self).model_fields["model"].default:
            raise ValueError("kind 'server' needs `model`, the name of a model that the server has")
        if self.serve and not re.fullmatch(r"http://(127\.0\.0\.1|localhost):\d+/v1", self.base_url):
            raise ValueError(
                f"`serve` starts a server here: base_url must be http://127.0.0.1:PORT/v1: {self.base_url}"
            )
        return self

    @property
    def label(self) -> str:
        """What a table or figure calls the model."""
        return "simulated reader" if self.kind == "simulated" else self.model


class Config(_Strict):
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
    seed: int = Field(default=0, ge=0)
    """Seed of the run: enters every call's sample_id."""

    group_size: int = Field(default=4, ge=1)
    """G, rollouts a question (paper A: 4; MASkills 1)."""
    iterations: int = Field(default=5, ge=0)
    """Rounds of evolution (paper A: 5)."""
    advantage_std: bool = False
    """Divide advantages by the group's standard deviation (off in the paper's setting)."""
    structured_diagnosis: bool = True
    """Ask the critic for checked failure diagnoses (paper 5.5 switches it off as an ablation)."""
    drop_equal_groups: bool = False
    """Leave out groups whose rewards do not differ (ablation "DAPO filter", paper 5.5)."""
    label_conditioned: bool = False
    """Condition credit and updates on the question's category (ablation, paper 5.5)."""

    utility_momentum: float = Field(default=0.6, ge=0, le=1)
    """u <- m u + (1 - m) mean credit (MASkills: 0.6)."""
    prune_threshold: float = -0.3
    """Prune at this iteration's score or below (MASkills: -0.3)."""
    induction_support: int = Field(default=2, ge=1)
    """Distinct questions that a pattern needs before a skill is induced from it (FACTS A, inferred: 2)."""
    group_patterns: bool = True
    """Group induction evidence into patterns over questions; off passes on single residuals, as MASkills does."""
    hard_reward: float = 0.5
    """A question is a hard case at this mean reward or below (MASkills: 0.5)."""
    library_cap: int = Field(default=8, ge=1)
    """Skills an agent may hold (MASkills: 8 on HotpotQA, 4 on LoCoMo)."""
    proposals: int = Field(default=1, ge=1)
    """Skills proposed at each induction, of which the best on the screen goes on to the gate (ours; 1 is off)."""
    screen_questions: int = Field(default=12, ge=1)
    """Training questions that proposals are screened on."""
    consolidate_every: int = Field(default=2, ge=1)
    """Consolidate in every n-th iteration (paper A: 2)."""
    prune_every: int = Field(default=2, ge=1)
    """Prune in every n-th iteration (paper A: 2 on HotpotQA, 3 on LoCoMo)."""
    gate_delta: float = Field(default=0.03, ge=0)
    """A candidate library is kept if its validation score is at least the base's minus this (MASkills: 0.03)."""
    start_libraries: Path | None = None
    """Folder with one library folder an agent to start from; null starts empty (paper A)."""
    test_every_iteration: bool = False
    """Test after every iteration, not only after the last one (for curves of the test score; it decides nothing)."""

    grep_calls: int = Field(default=3, ge=0)
    """Searches an agent may make a question (MASkills: 3)."""
    grep_lines: int = Field(default=20, ge=1)
    """Lines a search returns at most (MASkills: 20)."""
    handover_items: int = Field(default=6, ge=1)
    """Lines an agent may hand over (MASkills: 6 excerpts)."""

    train_sampling: SamplingConfig = SamplingConfig()
    """Training rollouts (paper A: the model's own default)."""
    validation_sampling: SamplingConfig = SamplingConfig()
    """Validation (paper A: HotpotQA as in training, LoCoMo greedy)."""
    test_sampling: SamplingConfig = SamplingConfig(temperature=0)
    """Test (paper A: greedy)."""
    critic_sampling: SamplingConfig = SamplingConfig(temperature=0, max_tokens=4096)
    """Critic (our choice: greedy)."""
    optimizer_sampling: SamplingConfig = SamplingConfig(max_tokens=4096)
    """Aggregation and operators (our choice: the model's default)."""
    fit_replies: bool = False
    """Narrow the schemas of critic's and optimizer's replies so that the longest one fits their max_tokens. For small
    models, which fill strings and lists up to their bounds (reply_schemas.py)."""
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
        return " + ".join(dict.fromkeys(model.label for model in (self.actor, self.critic, self.optimizer)))

    def deciding(self) -> dict[str, Any]:
        """Every field that decides results: not the profile's name, where files lie or how a server is reached."""
        servers = {name: {"base_url", "api_key_env", "max_concurrency", "timeout", "max_attempts"} for name in MODELS}
        return self.model_dump(
            mode="json", exclude={"profile": True, "data_path": True, "start_libraries": True, **servers}
        )


MODELS = ("actor", "critic", "optimizer")
LAYERED = ("benchmark", "method")
METHODS: tuple[str, ...] = get_args(MethodName)


def profile_path(name: str) -> Path:
    """The YAML file of a profile: one of ours by name, or a path; ConfigError names the profiles there are."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else paths.PROFILES / f"{name}.yaml"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in paths.PROFILES.glob("*.yaml")))
        raise ConfigError(f"no profile {name!r}: there are {there}; or give the path of a .yaml file")
    return path


def _read_profile(path: Path, *, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """A profile's values over those of the profile that it extends."""
    if path in above:
        raise ConfigError(f"{path}: extends itself, by way of {', '.join(p.stem for p in above)}")
    try:
        values = _mapping(yaml.safe_load(path.read_text(encoding="utf-8")), str(path))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML in UTF-8: {error}") from error
    base = values.pop("extends", None)
    if base is None:
        return values
    try:
        base_path = profile_path(str(base))
    except ConfigError as error:
        raise ConfigError(f"{path}: extends: {error}") from error
    return _merged(_read_profile(base_path, above=(*above, path)), values)


def profile_seeds(profile: str = "demo") -> list[int]:
    """The seeds of a profile's training runs: its `seeds`, else three, as many as the paper's runs (FACTS A).

    Raises:
        ConfigError: No such profile, or `seeds` is no list of integers from 0.
    """
    path = profile_path(profile)
    seeds = _read_profile(path).get("seeds", [0, 1, 2])
    if not (isinstance(seeds, list) and seeds and all(type(seed) is int and seed >= 0 for seed in seeds)):
        raise ConfigError(f"{path}: seeds: expected a list of integers from 0, found {seeds!r}")
    return seeds


def _mapping(values: Any, where: str) -> dict[str, Any]:
    if values is not None and not isinstance(values, Mapping):
        raise ConfigError(f"{where}: expected keys and values, found {type(values).__name__} {values!r}")
    return dict(values or {})


def _check_fields(values: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """ConfigError for an unknown key, also within a nested field."""
    check_keys(values, known, where=where)
    for name, value in values.items():
        field = Config.model_fields.get(name)
        if field and isinstance(field.default, BaseModel) and isinstance(value, Mapping):
            check_keys(value, type(field.default).model_fields, where=f"{where}: {name}")


def _layers(values: Any, names: Iterable[str], where: str, *further: str) -> dict[str, dict[str, Any]]:
    """What a profile says for some benchmarks or methods: by name, fields (and `further` keys). All are checked."""
    known = [*(name for name in Config.model_fields if name not in ("profile", *LAYERED)), *further]
    layers = {name: _mapping(layer, f"{where}.{name}") for name, layer in _mapping(values, where).items()}
    check_keys(layers, names, where=where)
    for name, layer in layers.items():
        _check_fields(layer, known, f"{where}.{name}")
    return layers


def _merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Layers over one another; nested mappings (sampling, models) are merged, not replaced."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
                value = _merged(result[key], value)
            result[key] = value
    return result


def load_config(profile: str = "demo", **overrides: Any) -> Config:
    """The config of a profile with overrides; ConfigError names what is wrong and where."""
    _check_fields(overrides, Config.model_fields, "overrides")
    path = profile_path(profile)
    values = _read_profile(path)
    values.pop("seeds", None)  # of the notebooks' runs (`profile_seeds`); a config has one
    _check_fields(values, [*Config.model_fields, "per_benchmark", "per_method"], str(path))
    benchmark, method = (
        str(overrides.get(name, values.get(name, Config.model_fields[name].default))) for name in LAYERED
    )
    benchmarks = dict.fromkeys((*BENCHMARKS, benchmark))  # the chosen one may be the user's own
    by_benchmark = _layers(values.pop("per_benchmark", None), benchmarks, f"{path}: per_benchmark")
    by_method = _layers(values.pop("per_method", None), METHODS, f"{path}: per_method", "per_benchmark")
    by_both = {
        name: _layers(layer.pop("per_benchmark", None), benchmarks, f"{path}: per_method.{name}.per_benchmark")
        for name, layer in by_method.items()
    }
    layers = (by_benchmark.get(benchmark, {}), by_method.get(method, {}), by_both.get(method, {}).get(benchmark, {}))
    try:
        return Config.model_validate(_merged(values, *layers, overrides, {"profile": path.stem}))
    except ValidationError as error:
        raise ConfigError(_readable(error, profile)) from error


def _readable(error: ValidationError, profile: str) -> str:
    lines = [f"config (profile {profile}):"]
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"]) or "config"
        got = "" if problem["type"] == "value_error" else f" (got {problem.get('input')!r})"
        lines.append(f"  {place}: {problem['msg'].removeprefix('Value error, ')}{got}")
    return "\n".join(lines)
