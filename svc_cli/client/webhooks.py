"""Lists webhook deliveries, resends them, and manages the signing secret."""

from collections.abc import Mapping

from svc_cli.client.calls import Calls, part
from svc_daemon.wire import Json


class WebhookCalls(Calls):
    """The client's methods that list and resend webhook calls, and manage their secret."""

    def deliveries(self, filters: Mapping[str, str | int] | None = None) -> Json:
        """Return `{deliveries: [{id, event, source_id, status, attempts, …}], has_more, last_id}`.

        Filters are `status` (`pending`, `delivered`, `failed`), `source_id`, `limit`, `after`.
        """
        return self._get("/v1/webhooks/deliveries", filters)

    def resend_delivery(self, delivery_id: str) -> Json:
        """Send the webhook call again, with the same event id."""
        return self._call("POST", f"/v1/webhooks/deliveries/{part(delivery_id)}/resend", json={})

    def webhook_secret(self) -> Json:
        """Return `{secret, previous_secret, previous_expires_at, rotated_at}`."""
        return self._get("/v1/webhooks/secret")

    def rotate_webhook_secret(self) -> Json:
        """Create a new secret; until `previous_expires_at`, calls are signed with both secrets."""
        return self._call("POST", "/v1/webhooks/secret/rotate", json={})
