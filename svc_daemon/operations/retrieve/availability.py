"""Whether searches are possible: the operator's switch, rebuilds, and failures of the index."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from svc_daemon.core.ids import Ids
from svc_daemon.core.task_retries import retry_after_s
from svc_daemon.core.times import from_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.process.contexts import Context
from svc_daemon.provider.errors import DocumentMissing, ProviderError
from svc_daemon.store.rows.tasks import find_last_rebuild
from svc_daemon.store.rows.teams import delete_fact, find_fact, put_fact
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.searches import SearchSwitch, SearchSwitchChange

T = TypeVar("T")


def refuse_in_maintenance(connection: Connection, context: Context, team_id: str) -> str | None:
    """Raise `team_store_maintenance` while the team's index is being rebuilt.

    Returns the id of the index's last rebuild; None if there was none.
    """
    last = find_last_rebuild(connection, team_id)
    if last is None or last.finished_at is not None:
        return last.id if last else None
    elapsed = context.clock.now() - from_text(last.started_at or last.created_at)
    raise ServiceError(
        ErrorCode.TEAM_STORE_MAINTENANCE,
        "The team's search index is being rebuilt; try again shortly.",
        task_id=last.id,
        retry_after_seconds=retry_after_s(elapsed.total_seconds(), last.chunks_done, last.chunks_total),
    )


async def ask_index(context: Context, team_id: str, work: Callable[[], T]) -> T:
    """Run `work`, which calls the index, in a thread; raises DocumentMissing or `search_failed`.

    Raises `team_store_maintenance` if the index is being rebuilt.
    """
    try:
        return await asyncio.to_thread(work)
    except DocumentMissing:
        raise
    except ProviderError as error:
        context.read(partial(refuse_in_maintenance, context=context, team_id=team_id))
        raise ServiceError(ErrorCode.SEARCH_FAILED, str(error)) from error


#: Name of a row of the table `facts`, which exists while search is turned off. It has the seconds until clients may
#: retry.
FACT = "search_disabled"


def refuse_disabled(connection: Connection) -> None:
    """Raise `search_disabled` if the operator has turned search off."""
    retry_after_s = _find(connection)
    if retry_after_s is not None:
        raise ServiceError(ErrorCode.SEARCH_DISABLED, retry_after_seconds=retry_after_s)


def show_search(connection: Connection) -> SearchSwitch:
    retry_after_s = _find(connection)
    return SearchSwitch(object="search_switch", enabled=retry_after_s is None, retry_after_seconds=retry_after_s)


def switch_search(connection: Connection, _ids: Ids, change: SearchSwitchChange) -> SearchSwitch:
    """Turn search on or off for all teams."""
    if change.enabled:
        delete_fact(connection, FACT)
    else:
        put_fact(connection, FACT, str(change.retry_after_seconds))
    return show_search(connection)


def _find(connection: Connection) -> int | None:
    fact = find_fact(connection, FACT)
    return None if fact is None else int(fact)
