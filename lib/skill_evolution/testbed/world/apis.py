"""From the apps' methods to the `apis` that agent code sees: checked arguments, and documentation to look up."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic_monty import ExternalModule

from skill_evolution.testbed.world.apps import APPS, App, AppError, State

_MAX_CHARS = 200

Api = Callable[..., Any]


def bind(state: State) -> dict[str, dict[str, Api]]:
    """The APIs of a session by app and name, working on its tables; the documentation is an app of its own."""
    apps = _apps("items" in state)
    apis = {app.name: {name: _checked(app(state), name) for name in _names(app)} for app in apps}
    return apis | {"api_docs": _documentation(apps)}


#: What a fresh session runs first; dumped with the session's names, so that neither name costs a look-up later.
PRELUDE = "import apis\nfrom apis import complete_task"


def modules(apis: Mapping[str, Mapping[str, Api]], *, count: Callable[[], None], complete: Api) -> ExternalModule:
    """`apis` as the module of a sandbox.

    The modules' ids are derived from their names, so that names which a session kept find the APIs of its next run.

    Args:
        apis: The APIs by app and name.
        count: Called before each API call.
        complete: The completing call, which isn't counted.
    """
    return ExternalModule(
        {
            app: ExternalModule({name: _counted(api, count) for name, api in named.items()}, id=_identity(app))
            for app, named in apis.items()
        }
        | {"complete_task": complete},
        id=_identity("apis"),
    )


@cache
def _apps(private: bool) -> tuple[type[App], ...]:
    return tuple(app for app in APPS if private or not app.private)


@cache
def _identity(name: str) -> UUID:
    return uuid5(NAMESPACE_URL, name)


@cache
def _names(app: type[App]) -> tuple[str, ...]:
    return tuple(name for name, member in vars(app).items() if inspect.isfunction(member) and name[0] != "_")


@cache
def _signature(app: type[App], name: str) -> inspect.Signature:
    signature = inspect.signature(getattr(app, name))
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _counted(api: Api, count: Callable[[], None]) -> Api:
    def call(*args: Any, **kwargs: Any) -> Any:
        count()
        return api(*args, **kwargs)

    return call


def _checked(app: App, name: str) -> Api:
    """The API with its arguments checked; what it refuses becomes an error that names API and parameter."""
    api, signature, method = f"{app.name}.{name}", _signature(type(app), name), getattr(app, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = check(api, signature, *args, **kwargs)
        try:
            return method(**arguments)
        except AppError as refused:
            raise LookupError(f"{api}: {refused}") from None

    return call


def check(api: str, signature: inspect.Signature, /, *args: Any, **kwargs: Any) -> dict[str, str]:
    """The arguments by parameter.

    Raises:
        TypeError: One is missing, unknown or not a string.
        ValueError: One is too long.
    """
    try:
        arguments = signature.bind(*args, **kwargs).arguments
    except TypeError as wrong:
        raise TypeError(f"{api}: {wrong}; call it as {api}{signature}") from None
    for parameter, value in arguments.items():
        if not isinstance(value, str):
            raise TypeError(f"{api}: parameter {parameter!r} must be a string, not {type(value).__name__}")
        if len(value) > _MAX_CHARS:
            raise ValueError(f"{api}: parameter {parameter!r} is longer than {_MAX_CHARS} characters")
    return arguments


@cache
def _documentation(apps: tuple[type[App], ...]) -> dict[str, Api]:
    """The look-ups, named as AppWorld names them, so that one prompt serves both worlds."""
    named = {app.name: app for app in apps}

    def one(api: str, app_name: str) -> type[App]:
        if app_name not in named:
            raise LookupError(f"{api}: there is no app {app_name!r}; there are {', '.join(named)}")
        return named[app_name]

    def show_app_descriptions() -> list[dict[str, str]]:
        return [{"name": app.name, "description": inspect.getdoc(app) or ""} for app in apps]

    def show_api_descriptions(app_name: str) -> list[dict[str, str]]:
        app = one("api_docs.show_api_descriptions", app_name)
        return [{"name": name, "description": _doc(app, name)} for name in _names(app)]

    def show_api_doc(app_name: str, api_name: str) -> dict[str, str]:
        app = one("api_docs.show_api_doc", app_name)
        if api_name not in _names(app):
            raise LookupError(
                f"api_docs.show_api_doc: {app_name} has no API {api_name!r}; it has {', '.join(_names(app))}"
            )
        call = f"apis.{app_name}.{api_name}{_signature(app, api_name)}"
        return {"call": call, "description": _doc(app, api_name)}

    return {api.__name__: _strings(api) for api in (show_app_descriptions, show_api_descriptions, show_api_doc)}


def _strings(api: Api) -> Api:
    signature = inspect.signature(api)
    return lambda *args, **kwargs: api(**check(f"api_docs.{api.__name__}", signature, *args, **kwargs))


def _doc(app: type[App], name: str) -> str:
    return inspect.getdoc(getattr(app, name)) or ""
