"""The secrets that sign webhook calls.

A team's secret is derived from the installation's secret and the team's generation number, so no webhook secret is
stored. Each rotation increments the generation; for a time, the secret of the previous generation signs as well.
"""

import base64
import hashlib
import hmac

#: Number of random bytes in a secret; the standard allows 24 to 64.
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105  (the prefix, not a secret)


def secret_text(random: bytes) -> str:
    """Encode a secret as `whsec_…`, the form that receivers use."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a webhook secret has {SECRET_BYTES} bytes, not {len(random)}")
    return SECRET_PREFIX + base64.b64encode(random).decode("ascii")


def team_secret(installation_secret: bytes, team_id: str, generation: int) -> str:
    """Derive the secret `whsec_…` of one generation, in the form that the team's receivers use."""
    message = f"webhook:{team_id}:{generation}".encode()
    return secret_text(hmac.new(installation_secret, message, hashlib.sha256).digest())
