"""`package.module:factory`: the user's function that returns a recipe, found by name and called.

A list is a mapping from names to such functions; `package.module:LIST[name]` is one of its entries. Only the user's own
command names a factory; no file that came from elsewhere is ever asked which code to run.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from assay.protocol.errors import UsageError, UserError
from assay.training.recipes.recipe import Recipe

_SHAPE = "Write package.module:factory, for example examples.own_model:factory."


def load_recipe(name: str, seed: int | None = None) -> Recipe:
    """The recipe that `package.module:factory` returns; the working folder is searched first.

    seed: given to a factory that takes a `seed` (`takes_seed`); another is called as it is.

    Raises:
        UsageError: FactoryMalformed, ModuleMissing, FactoryMissing, NotAFactory.
        UserError: ModuleFails, FactoryFails, NotARecipe; what `Recipe` raises.
    """
    found = _named(name)
    if not callable(found):
        raise UsageError(
            f"{name} is a {type(found).__name__}, not a factory.",
            code="NotAFactory",
            remedy="Name a function without arguments that returns a Recipe.",
        )
    wanted = _required(found)
    if wanted:
        raise UsageError(
            f"{name} wants arguments: {', '.join(wanted)}.",
            code="NotAFactory",
            remedy="Give every argument a default, or name a function without arguments.",
        )
    return _made(found, name, {} if seed is None or not _has_seed(found) else {"seed": seed})


def listed(name: str) -> list[str]:
    """The names of a list's factories, each as `load_recipe` takes it; of a factory its own.

    Raises:
        UsageError: FactoryMalformed, ModuleMissing, FactoryMissing. UserError: ModuleFails.
    """
    found = _named(name)
    return [f"{name}[{key}]" for key in found] if isinstance(found, Mapping) else [name]


def _named(name: str) -> Any:
    """What a name means: an attribute of a module, or an entry of a list."""
    place, bracket, key = name.partition("[")
    module_name, colon, attribute = place.partition(":")
    is_whole = not bracket or key.endswith("]")
    if not colon or not is_whole or not all(p.isidentifier() for p in (*module_name.split("."), *attribute.split("."))):
        raise UsageError(f"{name!r} names no factory.", code="FactoryMalformed", remedy=_SHAPE)
    found = _attribute(_module(module_name), module_name, attribute)
    if not bracket:
        return found
    if not isinstance(found, Mapping) or key[:-1] not in found:
        near = difflib.get_close_matches(key[:-1], list(found), 1) if isinstance(found, Mapping) else []
        raise UsageError(
            f"{place} has no entry {key[:-1]!r}.",
            code="FactoryMissing",
            remedy=f"Did you mean {place}[{near[0]}]?" if near else "Name an entry of a mapping of factories.",
        )
    return found[key[:-1]]


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(missing + "."):
            raise UsageError(
                f"There is no module {missing!r} in the working folder or among the installed packages.",
                code="ModuleMissing",
                remedy="Run the command in the folder that holds your module, or install its package.",
            ) from None
        raise _lacks(name, missing) from None
    except Exception as error:
        raise _failed(f"Importing {name}", error, "ModuleFails") from error


def _attribute(module: ModuleType, module_name: str, attribute: str) -> Any:
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            known = [n for n in vars(module) if callable(getattr(module, n)) and not n.startswith("_")]
            near = difflib.get_close_matches(attribute, known, 1)
            raise UsageError(
                f"The module {module_name} has no {attribute!r}.",
                code="FactoryMissing",
                remedy=f"Did you mean {near[0]}?" if near else "Name the function that returns your Recipe.",
            )
        found = getattr(found, part)
    return found


def _required(factory: Any) -> list[str]:
    """Arguments without a default."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is inspect.Parameter.empty and p.kind not in variable]


def takes_seed(name: str) -> bool:
    """Whether a factory takes a `seed`. Raises as `load_recipe`, but for what the call raises."""
    return _has_seed(_named(name))


def _has_seed(factory: Any) -> bool:
    try:
        return "seed" in inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return False


def _made(factory: Any, name: str, given: Mapping[str, int]) -> Recipe:
    try:
        made = factory(**given)
    except UserError:
        raise
    except ModuleNotFoundError as error:
        raise _lacks(name, error.name or "") from None
    except Exception as error:
        raise _failed(name, error, "FactoryFails") from error
    if not isinstance(made, Recipe):
        raise UserError(
            f"{name} returned a {type(made).__name__}, not a Recipe.",
            code="NotARecipe",
            remedy="Return assay.training.recipes.recipe.Recipe(module, loss, optimizer, data, batch_size).",
        )
    return made


def _lacks(name: str, missing: str) -> UserError:
    return UserError(
        f"{name} needs the module {missing!r}, which is not installed.",
        code="ModuleFails",
        remedy="Install it beside assay.",
    )


def _failed(what: str, error: Exception, code: str) -> UserError:
    """What went wrong inside the user's code, with the innermost line of it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "site-packages" not in f.filename and "importlib" not in f.filename]
    last = own[-1] if own else None
    where = f" at {last.filename}:{last.lineno}" if last is not None else ""
    reason = (str(error).strip().splitlines() or [""])[0]
    return UserError(
        f"{what} fails: {type(error).__name__}: {reason}{where}",
        code=code,
        remedy="Make it run in plain Python first.",
    )
