"""The operator's switch that turns search off for a while, for all teams. It survives a restart."""

from sqlite3 import Connection

from svc_daemon.core.ids import Ids
from svc_daemon.errors import ServiceError
from svc_daemon.store.facts import delete_fact, find_fact, put_fact
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.switches import SearchSwitch, SearchSwitchChange

#: Holds the seconds after which clients may try again; there while search is off.
FACT = "search_disabled"


def refuse_disabled(connection: Connection) -> None:
    """Raises `search_disabled` while the operator has search turned off."""
    retry_after_s = _find(connection)
    if retry_after_s is not None:
        raise ServiceError(ErrorCode.SEARCH_DISABLED, retry_after_seconds=retry_after_s)


def show_search(connection: Connection) -> SearchSwitch:
    retry_after_s = _find(connection)
    return SearchSwitch(enabled=retry_after_s is None, retry_after_seconds=retry_after_s)


def switch_search(connection: Connection, _ids: Ids, change: SearchSwitchChange) -> SearchSwitch:
    """Turn search on or off, from the next request on."""
    if change.enabled:
        delete_fact(connection, FACT)
    else:
        put_fact(connection, FACT, str(change.retry_after_seconds))
    return show_search(connection)


def _find(connection: Connection) -> int | None:
    fact = find_fact(connection, FACT)
    return None if fact is None else int(fact)
