"""Triton's interpreter without what it does for nothing, which is half of its time.

Triton 3.6 to 3.9, `triton/runtime/interpreter.py`. Where another version has none of these names, kernels are
interpreted as it does by itself, to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any


@cache
def quicken() -> None:
    """Once a process, before its first kernel is interpreted."""
    from triton.runtime import interpreter

    it: Any = interpreter
    options: Any = getattr(getattr(it, "interpreter_builder", None), "options", None)
    if getattr(options, "sanitize_overflow", False) and not options.debug:
        # Each sum is computed again in 64 bits for an assertion that is made in debugging alone.
        it.interpreter_builder.options = replace(options, sanitize_overflow=False)
    if hasattr(it, "_patch_lang") and hasattr(it, "_LangPatchScope"):
        it._patch_lang = _patched_once(it._patch_lang, it._LangPatchScope)


def _patched_once(patch: Callable[[Any], Any], scope: type[Any]) -> Callable[[Any], Any]:
    """`patch` for a kernel, and of the functions that it calls for those that see a module which is not patched yet."""
    from triton import language

    modules: tuple[Any, ...] = (language, language.core)
    patched: set[Any] = set()

    class Scope(scope):
        """What a kernel is interpreted in."""

        def restore(self) -> None:
            patched.clear()
            super().restore()

    @cache
    def seen_by(function: Any) -> set[Any]:
        return {module for module in modules if any(value is module for value in function.__globals__.values())}

    def once(function: Any) -> Any:
        if patched and seen_by(function) <= patched:
            return scope()
        found = patch(function)
        if not patched:
            found.__class__ = Scope
        patched.update(seen_by(function))
        return found

    return once
