"""The secrets of owners: made only here, and recognised without a list of them.

A secret carries its own proof, which only this process can make. So no client can invent a secret
for others to be counted under, and owners take no memory. The secrets end with the process.
"""

import hashlib
import hmac
import secrets

PROOF_CHARS = 64


class OwnerSecrets:
    """Makes and recognises the secrets of one server."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def issue(self) -> str:
        """Return a new owner's secret."""
        name = secrets.token_urlsafe(24)
        return name + self._proof(name.encode())

    def issued(self, secret: str) -> bool:
        """Tell whether a secret was issued here; takes as long for every one of its length."""
        given = secret.encode("utf-8", "surrogatepass")
        name, proof = given[:-PROOF_CHARS], given[-PROOF_CHARS:]
        return hmac.compare_digest(proof, self._proof(name).encode())

    def _proof(self, name: bytes) -> str:
        return hmac.new(self._key, name, hashlib.sha256).hexdigest()
