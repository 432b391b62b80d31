"""The artifact store: bytes by digest, objects by root, and an actor's own copies."""
