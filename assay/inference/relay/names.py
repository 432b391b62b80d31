"""Under which names a relay answers, and the pages of which it answers: whoever asks it spends its owner's money."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from assay.inference.gateway.limits import error_document

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

_PLACE: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::\d{1,5})?")
_ORIGIN: Final = re.compile(r"https?://(.+)")
_SHOWN: Final = 80


class NamedHere:
    """An application that answers requests to loopback names, and `allowed` ones, from no page of another name.

    Attack: a web page whose name is made to mean 127.0.0.1 (DNS rebinding) asks a relay as its own server, and spends
    the purse. The browser still sends the page's name as Host, and as Origin.
    """

    def __init__(self, app: ASGIApp, allowed: Iterable[str] = ()) -> None:
        self._app, self._names = app, LOOPBACK | {name.lower() for name in allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request: refused, or handed on."""
        why = "" if scope["type"] != "http" else self._refusal(Headers(scope=scope))
        if why:
            document = error_document(why, "HostNotAllowed")
            await JSONResponse(document, 403, {"Connection": "close"})(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers) -> str:
        """Why nothing is answered; empty where it is."""
        hosts = headers.getlist("host")
        if not hosts:
            return "The request names no Host. Send the relay's own, such as 127.0.0.1."
        for host in hosts:
            if not self._is_own(host):
                return self._said(f"The request is for the Host {host[:_SHOWN]!r}", host)
        for origin in headers.getlist("origin"):
            found = _ORIGIN.fullmatch(origin)
            if found is None or not self._is_own(found[1]):
                return self._said(
                    f"The request is from a page of {origin[:_SHOWN]!r}", "" if found is None else found[1]
                )
        return ""

    def _is_own(self, place: str) -> bool:
        found = _PLACE.fullmatch(place.lower())
        return found is not None and found[1] in self._names

    @staticmethod
    def _said(what: str, place: str) -> str:
        found = _PLACE.fullmatch(place.lower())
        hint = "" if found is None else f" If it is yours, start the relay with --allow-host {found[1][:_SHOWN]}."
        return f"{what}; the relay pays for its own machine alone, so that no web page spends its purse.{hint}"
