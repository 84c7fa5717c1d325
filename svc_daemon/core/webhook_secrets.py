"""The secrets that sign webhook calls.

A team's secret is derived from the installation's secret and a generation number, which grows whenever the team gets a
new secret. For some time after that, calls are also signed with the previous secret.
"""

import base64
import hashlib
import hmac

#: Random bytes of a secret. Standard Webhooks allows 24 to 64.
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105  (the prefix, not a secret)


def secret_text(random: bytes) -> str:
    """Encode a secret as `whsec_…`, the form in which receivers use it."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a webhook secret has {SECRET_BYTES} bytes, not {len(random)}")
    return SECRET_PREFIX + base64.b64encode(random).decode("ascii")


def team_secret(installation_secret: bytes, team_id: str, generation: int) -> str:
    """Derive a team's webhook secret. Each generation number gives another secret."""
    message = f"webhook:{team_id}:{generation}".encode()
    return secret_text(hmac.new(installation_secret, message, hashlib.sha256).digest())
