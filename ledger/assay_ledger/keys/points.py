"""Points and secrets of pairing curves as contracts take them: coordinates of one width, one encoding per point."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.errors import InvariantError


@dataclass(frozen=True, slots=True)
class PointEncoding:
    """A curve's field modulus, the order of its groups, and the bytes of a big-endian coordinate."""

    modulus: int
    order: int
    width: int

    def check_secret(self, secret: int) -> int:
        """The secret. Raises InvariantError if it is not in [1, order)."""
        if not 0 < secret < self.order:
            # The value itself is not repeated: this text may end in a log.
            raise InvariantError("A BLS secret must lie in [1, curve order).")
        return secret

    def is_canonical(self, data: bytes, length: int) -> bool:
        """Right length, not infinity, every coordinate below the modulus: one encoding per point."""
        return len(data) == length and any(data) and all(c < self.modulus for c in self.coordinates(data))

    def coordinates(self, data: bytes) -> tuple[int, ...]:
        """The coordinates that bytes hold."""
        return tuple(int.from_bytes(data[k : k + self.width], "big") for k in range(0, len(data), self.width))

    def encode(self, *coordinates: int) -> bytes:
        """The bytes of coordinates."""
        return b"".join(c.to_bytes(self.width, "big") for c in coordinates)
