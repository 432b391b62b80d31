"""The log of a process, configured in one place: plain lines for people, or one JSON document a line for machines.

What is logged may quote strangers and nodes: URLs lose what may be a key, and known secrets are taken out wherever they
stand. Modules below log with the standard library; structlog gives records their fields and their form.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Final, TextIO
from urllib.parse import unquote, urlsplit

import structlog

from assay.protocol.errors import shown
from assay_ledger.chain.node_urls import redacted, without_keys

PLAIN: Final = "plain"
JSON: Final = "json"

TOLD: Final = "assay.agent"
"""The logger whose every word is for the person at the terminal; of the others only warnings are."""

_URL: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,15}://[^\s\"'<>\\]+")
_SECRET_NAME: Final = re.compile(r"pass(word|phrase)?|secret|private_?key|mnemonic|authorization|token|api_?key", re.I)
_LEAST: Final = 4
"""Shorter secrets are not searched for: they are in other words too."""
_MOST_CHARACTERS: Final = 4000
"""Of a text: what a node says may have megabytes."""
_LAST: Final = 1500
"""Of these its last: a traceback names its error at the end."""
_MOST_SEARCHED: Final = 1 << 16
_DEPTH: Final = 6

_bound: dict[str, Any] = {}
_secrets: set[str] = set()
_urls: set[str] = set()

LogFields = MutableMapping[str, Any]


def bind(**fields: Any) -> None:
    """Every later line has these fields: the run, the role, the address. None takes one away."""
    for name, value in fields.items():
        if value is None:
            _bound.pop(name, None)
        else:
            _bound[name] = value


def hide(secret: str) -> None:
    """Wherever this text stands in a line, it is replaced."""
    if len(secret) >= _LEAST:
        _secrets.add(secret)


def hide_url(url: str) -> None:
    """The parts of a URL that only its user should know are replaced, also outside of it."""
    _urls.add(url)
    with suppress(ValueError):
        parts = urlsplit(url)
        for part in (parts.username, parts.password):
            hide(part or "")
            hide(unquote(part or ""))


def clean(text: str) -> str:
    """A text as it may be logged."""
    # What strangers send must not cost us the search; what is cut off here is not logged at all.
    text = text[:_MOST_SEARCHED]
    for url in sorted(_urls, key=len, reverse=True):
        text = text.replace(url, redacted(url))
        text = without_keys(text, url)
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, "...")
    text = shown(_URL.sub(lambda found: redacted(found[0]), text))
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[: _MOST_CHARACTERS - _LAST]} ... {text[-_LAST:]}"


def redact(_logger: object, _method: str, event: LogFields) -> LogFields:
    """The processor that every line goes through: values by `clean`, and those whose name says secret as a whole."""
    return {clean(str(name)): "..." if _names_secret(name) else _cleaned(value) for name, value in event.items()}


def _names_secret(name: object) -> bool:
    return isinstance(name, str) and _SECRET_NAME.fullmatch(name.rsplit(".", 1)[-1]) is not None


def _cleaned(value: Any, depth: int = 0) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()[: _MOST_CHARACTERS // 2]
    if isinstance(value, bool | int | float) or value is None:
        return value
    if depth < _DEPTH and isinstance(value, Mapping):
        return {clean(str(k)): "..." if _names_secret(k) else _cleaned(v, depth + 1) for k, v in value.items()}
    if depth < _DEPTH and isinstance(value, list | tuple):
        return [_cleaned(each, depth + 1) for each in value]
    return clean(str(value))


def _add_bound(_logger: object, _method: str, event: LogFields) -> LogFields:
    for name in ("message", "asctime"):
        # Left on the record by another handler's formatter: the event says the same.
        event.pop(name, None)
    for name, value in _bound.items():
        event.setdefault(name, value)
    return event


_BEFORE: Final[tuple[Any, ...]] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    _add_bound,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.format_exc_info,
)


_form = PLAIN


def is_json() -> bool:
    """Whether lines are documents now."""
    return _form == JSON


def configure(form: str, say: Callable[[str], None]) -> None:
    """The one configuration: `form` is PLAIN or JSON, `say` writes one line to stderr. May be called again."""
    global _form
    _form = form
    handler = _Lines(say)
    last: Any = structlog.processors.JSONRenderer(ensure_ascii=False) if form == JSON else _message
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=list(_BEFORE),
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, last],
        )
    )
    if form == PLAIN:
        handler.addFilter(lambda record: record.name == TOLD or record.levelno >= logging.WARNING)
    root, ours = logging.getLogger(), logging.getLogger("assay")
    for old in [old for old in root.handlers if isinstance(old, _Lines)]:
        root.removeHandler(old)
    root.addHandler(handler)
    ours.setLevel(logging.INFO)
    structlog.configure(
        processors=[*_BEFORE[:3], *_BEFORE[4:], structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _message(_logger: object, _method: str, event: LogFields) -> str:
    # Attack: a text of a stranger's that goes on with a line of ours, which says what did not happen.
    said = (str(event[name]) for name in ("event", "exception") if name in event)
    return "\n".join(said).replace("\n", "\n  ")


class _Lines(logging.Handler):
    """Gives each record, formatted, to `say`."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        try:
            self._say(self.format(record))
        except Exception:
            self.handleError(record)


_stream: TextIO | None = None


def write_to(stream: TextIO | None) -> TextIO | None:
    """Lines go there from now on, to stderr for None; gives where they went before."""
    global _stream
    before, _stream = _stream, stream
    return before


def write_line(text: str) -> None:
    """A line on stderr as it is, in one write: lines of several threads do not mix."""
    out = sys.stderr if _stream is None else _stream
    out.write(text + "\n")
    out.flush()
