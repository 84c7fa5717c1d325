"""Sends one shipment, by the door that suits it."""

from svc_cli.errors import SvcError
from svc_cli.uploads.batches import send_batch
from svc_cli.uploads.deliveries import Parcel, stops_everything
from svc_cli.uploads.lines import Line
from svc_cli.uploads.shipments import Shipment
from svc_cli.uploads.singles import send_one, send_session
from svc_cli.uploads.summaries import Item


def send(line: Line, shipment: Shipment) -> list[Item]:
    """Send it, and tell what became of each file. Raises SvcError only for what would stop every file."""
    if shipment.kind == "batch":
        send_batch(line, shipment.parcels)
    else:
        _send_single(line, shipment.parcels[0], is_session=shipment.kind == "session")
    return [parcel.item for parcel in shipment.parcels]


def _send_single(line: Line, parcel: Parcel, *, is_session: bool) -> None:
    try:
        (send_session if is_session else send_one)(line, parcel)
    except SvcError as error:
        if stops_everything(error):
            raise
        parcel.item.refuse(error)
