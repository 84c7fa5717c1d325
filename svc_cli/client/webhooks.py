"""Lists and resends webhook deliveries, and manages the signing secret."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from svc_cli.client.calls import Calls, part

if TYPE_CHECKING:
    from svc_cli.client.types import (
        DeliveryAnswerDict,
        DeliveryListDict,
        WebhookSecretDict,
    )


class WebhookCalls(Calls):
    """The client's methods for webhook deliveries and the signing secret."""

    def deliveries(self, filters: Mapping[str, str | int] | None = None) -> "DeliveryListDict":
        """Return deliveries (events that cause webhook calls) with their calls, newest last.

        Filters are `status` (`pending`, `delivered`, `failed`), `source_id`, `limit`, `after`.
        """
        return self._get("/v1/webhooks/deliveries", filters)

    def resend_delivery(self, delivery_id: str) -> "DeliveryAnswerDict":
        """Make a delivery's webhook call again, with the same event id."""
        return self._call("POST", f"/v1/webhooks/deliveries/{part(delivery_id)}/resend", json={})

    def webhook_secret(self) -> "WebhookSecretDict":
        """Return the secret that signs webhook calls."""
        return self._get("/v1/webhooks/secret")

    def rotate_webhook_secret(self) -> "WebhookSecretDict":
        """Create a new secret. Until `previous_expires_at`, both secrets sign calls."""
        return self._call("POST", "/v1/webhooks/secret/rotate", json={})
