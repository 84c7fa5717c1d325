"""Records that sources became ready or failed: in the event log, for webhooks and for batches."""

from collections.abc import Sequence

from svc_daemon.core import readiness
from svc_daemon.databases.contract import Connection
from svc_daemon.operations.shared.batch_items import end_batches
from svc_daemon.operations.shared.events import record_events, source_event
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows import webhook_deliveries as store
from svc_daemon.store.rows.events import NewEvent
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.store.rows.webhook_deliveries import DeliveryRow
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light import webhook_calls


def record_outcomes(
    connection: Connection, context: Context, sources: Sequence[SourceRow], earlier: Sequence[NewEvent] = ()
) -> None:
    """Record that these sources became ready or failed: in the event log, for webhooks and for batches.

    All sources must be of one team. The events in `earlier` are recorded first.
    """
    if not sources:
        return
    team_id = sources[0].team_id
    kinds = [EventType.SOURCE_FAILED if each.status == readiness.FAILED else EventType.SOURCE_READY for each in sources]
    new_events = [source_event(kind, each) for kind, each in zip(kinds, sources, strict=True)]
    event_ids = record_events(connection, context.ids, team_id, [*earlier, *new_events])
    for source, event_id in zip(sources, event_ids[len(earlier) :], strict=True):
        record_call(connection, context, source, event_id)
    if batch_ids := {source.batch_id for source in sources if source.batch_id}:
        end_batches(connection, context, team_id, batch_ids)


def record_call(connection: Connection, context: Context, source: SourceRow, event_id: str) -> None:
    """Queue a webhook call if the source has a webhook and is ready or failed.

    `event_id` is the event's id in the event log. A source gets at most one call for each kind of event.
    """
    if source.webhook is None or not (source.ready or source.status == readiness.FAILED):
        return
    event = webhook_calls.READY if source.ready else webhook_calls.FAILED
    now = context.clock.timestamp()
    facts = {
        "id": source.id,
        "status": source.status,
        "ready": source.ready,
        "bucket_sync_status": source.sync_status,
        "type": source.type,
        "source_url": source.source_url,
        "error": source.error,
    }
    delivery = DeliveryRow(
        id=event_id,
        team_id=source.team_id,
        source_id=source.id,
        event=event,
        url=source.webhook["url"],
        body=webhook_calls.encode_body(event, event_id, now, source.webhook["metadata"], facts),
        due_at=now,
        created_at=now,
    )
    store.create_delivery(connection, delivery)
