"""Lists webhook deliveries, resends them, and manages the signing secret."""

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
    """The client's methods that list and resend webhook calls, and manage the secret that signs them."""

    def deliveries(self, filters: Mapping[str, str | int] | None = None) -> "DeliveryListDict":
        """Return deliveries (events for which a webhook is called), newest last, each with the calls made for it.

        Filters are `status` (`pending`, `delivered`, `failed`), `source_id`, `limit`, `after`.
        """
        return self._get("/v1/webhooks/deliveries", filters)

    def resend_delivery(self, delivery_id: str) -> "DeliveryAnswerDict":
        """Make the webhook call of a delivery again, with the same event id."""
        return self._call("POST", f"/v1/webhooks/deliveries/{part(delivery_id)}/resend", json={})

    def webhook_secret(self) -> "WebhookSecretDict":
        """Return the secret with which webhook calls are signed."""
        return self._get("/v1/webhooks/secret")

    def rotate_webhook_secret(self) -> "WebhookSecretDict":
        """Create a new secret; until `previous_expires_at`, calls are signed with both secrets."""
        return self._call("POST", "/v1/webhooks/secret/rotate", json={})
