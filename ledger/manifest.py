"""Manifests: which stored objects belong to one seat of one round, under which names.

A manifest is small JSON, itself an object of the store, found by the name `runs/<run>/<round>/<seat>/manifest`. Anybody
may write one; it is a hint where to look. What it names is bounded and hashed when fetched, and compared with the roots
on chain by whoever needs it. Several may stand for one seat: a reader tries them until one fits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assay.ledger.json_input import JsonRefused, parse_json
from assay.ledger.store import MAX_CANDIDATES, ArtifactStore
from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest, Round, Seat

VERSION: Final = 1
MAX_MANIFEST_BYTES: Final = 1 << 18
MAX_OBJECTS: Final = 1024
MAX_OBJECT_BYTES: Final = 1 << 40
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_HEX_DIGEST = re.compile(r"[0-9a-f]{64}")


class ManifestInvalid(UnavailableError):
    """A manifest is malformed, too large, or about something else."""

    remedy = "Whoever wrote it is at fault; wait for the seat's own manifest, or name another store."


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """A stored object: its digest and its length in bytes, which bounds the fetch."""

    digest: Digest
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The objects of one seat of one round by name (`state-0`, ..., `end`, `update`)."""

    run: Digest
    round: Round
    seat: Seat
    objects: Mapping[str, ObjectRef]

    def fetch(self, store: ArtifactStore, name: str, max_bytes: int) -> bytes:
        """One object, hashed. Raises ManifestInvalid if it is not named or announced too large, and what `get` does."""
        ref = self.objects.get(name)
        if ref is None:
            raise ManifestInvalid(f"{self._text()} names no object {name!r}.")
        if ref.size > max_bytes:
            raise ManifestInvalid(
                f"{self._text()} announces {ref.size} bytes for {name!r}, at most {max_bytes} may be."
            )
        data = store.get(ref.digest, ref.size)
        if len(data) != ref.size:
            raise ManifestInvalid(f"{self._text()} announces {ref.size} bytes for {name!r}, it has {len(data)}.")
        return data

    def _text(self) -> str:
        return f"The manifest of round {self.round}, seat {self.seat}"


def manifest_name(run: Digest, round_: Round, seat: Seat) -> str:
    """The name that manifests of a seat are indexed under."""
    return f"runs/{run.hex()}/{round_}/{seat}/manifest"


def publish(store: ArtifactStore, run: Digest, round_: Round, seat: Seat, objects: Mapping[str, bytes]) -> Digest:
    """Store all objects, then a manifest that names them; returns the manifest's digest.

    The manifest comes last, so whoever finds it finds everything it names. Raises ManifestInvalid for names or counts
    that no reader would accept, and what `put` does.
    """
    manifest = Manifest(run, round_, seat, {n: ObjectRef(store.put(data), len(data)) for n, data in objects.items()})
    encoded = encode_manifest(manifest)
    decode_manifest(encoded)
    return store.put(encoded, manifest_name(run, round_, seat))


def find_manifests(store: ArtifactStore, run: Digest, round_: Round, seat: Seat) -> tuple[Manifest, ...]:
    """Every well-formed manifest of a seat that the store has, at most MAX_CANDIDATES, sorted by digest.

    Malformed, unreadable and foreign ones are passed over: anybody may put rubbish under any name.
    """
    name = manifest_name(run, round_, seat)
    found = []
    for listed, digest in store.list(name, MAX_CANDIDATES):
        if listed != name:
            continue
        try:
            manifest = get_manifest(store, digest)
        except UnavailableError:
            continue
        if (manifest.run, manifest.round, manifest.seat) == (run, round_, seat):
            found.append(manifest)
    return tuple(found)


def get_manifest(store: ArtifactStore, digest: Digest) -> Manifest:
    """The manifest of a digest. Raises ManifestInvalid, and what `get` does."""
    return decode_manifest(store.get(digest, MAX_MANIFEST_BYTES))


def encode_manifest(manifest: Manifest) -> bytes:
    """The JSON bytes of a manifest: keys sorted, no spaces, so that equal manifests have equal digests."""
    document = {
        "version": VERSION,
        "run": manifest.run.hex(),
        "round": manifest.round,
        "seat": manifest.seat,
        "objects": {n: {"digest": ref.digest.hex(), "size": ref.size} for n, ref in manifest.objects.items()},
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def decode_manifest(data: bytes) -> Manifest:
    """Read a manifest that may come from anybody. Raises ManifestInvalid."""
    try:
        document = parse_json(data, max_bytes=MAX_MANIFEST_BYTES, max_depth=3)
    except JsonRefused as refused:
        raise _invalid(str(refused)) from None
    _check_keys(document, {"version", "run", "round", "seat", "objects"})
    if _integer(document["version"], VERSION) != VERSION:
        raise _invalid("its version is unknown")
    objects = document["objects"]
    if not isinstance(objects, dict) or len(objects) > MAX_OBJECTS or not all(map(_NAME.fullmatch, objects)):
        raise _invalid(f"its objects are not at most {MAX_OBJECTS} well-named entries")
    refs = {}
    for name in sorted(objects):
        _check_keys(objects[name], {"digest", "size"})
        refs[name] = ObjectRef(_digest(objects[name]["digest"]), _integer(objects[name]["size"], MAX_OBJECT_BYTES))
    return Manifest(
        run=_digest(document["run"]),
        round=Round(_integer(document["round"], (1 << 64) - 1)),
        seat=Seat(_integer(document["seat"], (1 << 32) - 1)),
        objects=refs,
    )


def _invalid(reason: str) -> ManifestInvalid:
    return ManifestInvalid(f"A manifest cannot be used: {reason}.")


def _check_keys(value: object, keys: set[str]) -> None:
    if not isinstance(value, dict) or value.keys() != keys:
        raise _invalid("its fields are not the documented ones")


def _digest(value: object) -> Digest:
    if not isinstance(value, str) or not _HEX_DIGEST.fullmatch(value):
        raise _invalid("a digest is not 64 lower-case hexadecimal digits")
    return Digest(bytes.fromhex(value))


def _integer(value: object, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise _invalid("a number is out of range")
    return value
