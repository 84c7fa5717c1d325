"""The payloads of webhook calls (Standard Webhooks)."""

import json
from collections.abc import Mapping
from typing import Any

READY, FAILED = "source.ready", "source.failed"

#: The source's fields that a webhook call contains.
_FACTS = ("id", "status", "ready", "bucket_sync_status", "type", "source_url")


def encode_body(
    event: str, event_id: str, timestamp: str, metadata: Mapping[str, Any], source: Mapping[str, Any]
) -> str:
    """Build the payload, with the fields of Standard Webhooks (`type`, `timestamp` and `data`) and others."""
    error = source.get("error")
    body = {
        "id": event_id,
        "type": event,
        "event": event,
        "timestamp": timestamp,
        "source_id": source["id"],
        **({"reason": error["code"]} if error else {}),
        "metadata": metadata,
        "data": {name: source[name] for name in _FACTS} | ({"error": error} if error else {}),
    }
    return json.dumps(body, ensure_ascii=False)
