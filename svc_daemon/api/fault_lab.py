"""The fault lab: makes requests fail on purpose, to test how clients handle errors.

`svc daemon run --faults FILE` turns the fault lab on. The rules in the file select the requests that fail.
"""

import asyncio
import logging
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from svc_daemon.api.endpoints import Endpoint, Handler
from svc_daemon.core.fault_lab import FaultPlan, FaultRule, FaultsRefused, parse_faults
from svc_daemon.errors import ServiceError

log = logging.getLogger(__name__)


class FaultLab:
    """Makes requests fail according to the rules in a file. Use it only on the event loop."""

    def __init__(self, path: Path, endpoints: tuple[Endpoint, ...]) -> None:
        """Read the rules from the file. Raises FaultsRefused if they are invalid, or OSError if it can't be read."""
        self._path = path
        self._routes = frozenset(f"{row.method} {row.path}" for row in endpoints)
        self._stamp = self._look()
        self._plan = self._read()

    def disturbing(self, row: Endpoint, handler: Handler) -> Handler:
        """Wrap the handler of a route, so that the rules for the route apply."""
        route = f"{row.method} {row.path}"

        async def handle(request: Request) -> Response:
            self._follow_file()
            rule = self._plan.choose(route)
            return await handler(request) if rule is None else await _disturb(rule, request, handler)

        return handle

    def _follow_file(self) -> None:
        """Read the file again if it has changed. Keep the old rules if the new ones are invalid."""
        try:
            stamp = self._look()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            self._plan = self._read()
        except (OSError, FaultsRefused) as error:
            log.warning("%s The earlier faults stay in effect.", error)

    def _look(self) -> tuple[int, int]:
        found = self._path.stat()
        return found.st_mtime_ns, found.st_size

    def _read(self) -> FaultPlan:
        try:
            return parse_faults(self._path.read_text(encoding="utf-8"), self._routes)
        except (FaultsRefused, UnicodeDecodeError) as error:
            raise FaultsRefused(f"The faults in {self._path} can't be used. {error}") from error


async def _disturb(rule: FaultRule, request: Request, handler: Handler) -> Response:
    response = await handler(request) if rule.when == "after" else None
    # `ResponseHeaders` sends this name in a header. Set it only now: an error from the handler is not the rule's.
    request.scope["state"]["fault"] = rule.name
    await asyncio.sleep(rule.delay_s)
    if rule.cut:
        request.scope["cut"]()
        raise ClientDisconnect
    if rule.code is not None:
        raise ServiceError(rule.code, **rule.details)
    return await handler(request) if response is None else response
