"""The marks by which nodes know the object store and the search index of their installation.

A mark is a name that begins with the installation's id. The first node leaves one in each of the two engines, and
records it in the database. Whenever a node connects to an engine, it compares them before anything else:

    in the database   in the engine        the engine is
    a mark            the same             right
    a mark            none, or others      wrong, or has lost its data: refused
    none              this installation's  right: a node was killed before it could record the mark
    none              none                 right if the installation is new, or if the engine has something of it
    none              another's            wrong if it can have only one
"""

import logging
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from svc_daemon.core.problems import Problem, Repair
from svc_daemon.databases.contract import Database
from svc_daemon.errors import WrongEngine
from svc_daemon.operations.installations import INSTALLATION_ID
from svc_daemon.store.checks import list_stored
from svc_daemon.store.rows.teams import find_fact, keep_fact, put_fact

log = logging.getLogger(__name__)


class MarkedEngine(Protocol):
    """A connected engine that has marks. The methods don't check the mark; they raise the engine's own errors."""

    def list_marks(self) -> Collection[str]: ...

    def has_mark(self, mark: str) -> bool: ...

    def put_mark(self, mark: str) -> None: ...

    def has_any(self, source_ids: Sequence[str], team_ids: Sequence[str]) -> bool:
        """Whether it has something of these sources or teams; without any, whether it has anything at all."""


@dataclass(frozen=True, slots=True)
class EngineMark:
    """The mark of one engine."""

    #: The engine's name for programs, such as `s3`.
    engine: str
    #: The engine in messages, such as `S3 store`.
    title: str
    #: The variable with its address.
    variable: str
    #: The row of the table `facts` that records the mark.
    fact: str
    #: Whether it can have only one installation.
    is_exclusive: bool

    def admit(self, state: Database, engine: MarkedEngine, installation_id: str | None) -> str | None:
        """Raise WrongEngine unless the engine is the installation's. Returns its mark, or None if it has none yet.

        A node that serves `installation_id` leaves the mark in an engine that was never used. A command, which passes
        None, leaves none.
        """
        recorded, found = state.read(partial(find_fact, name=self.fact)), engine.list_marks()
        if recorded is not None:
            if recorded not in found:
                raise self._refusal(found)
            return recorded
        if installation_id is None:
            return None
        own = [mark for mark in found if mark.startswith(installation_id)]
        if not own:
            self._check_unmarked(state, engine, found)
        mark = own[0] if own else make_mark(installation_id)
        if not own:
            engine.put_mark(mark)
        kept = state.write(partial(keep_fact, name=self.fact, value=mark))
        if kept not in (mark, *engine.list_marks()):
            # Another node of a new installation was first, and uses another engine.
            raise self._refusal(())
        return kept

    def find_problem(self, state: Database, engine: MarkedEngine) -> Problem | None:
        """Return the problem that the engine lacks its mark. Raises WrongEngine if it is another installation's."""
        recorded, found = state.read(partial(find_fact, name=self.fact)), engine.list_marks()
        if recorded is None or recorded in found:
            return None
        if found:
            raise self._refusal(found)
        message = f"the {self.title} lacks the mark of the installation: it was emptied or replaced"
        return Problem("mark", message, Repair.MARK_ENGINE, {"engine": self.engine})

    def renew(self, state: Database, engine: MarkedEngine) -> None:
        """Leave a new mark in an engine that has none, so that nodes use it from now on."""
        mark = make_mark(state.read(partial(find_fact, name=INSTALLATION_ID)) or "")
        engine.put_mark(mark)
        state.write(partial(put_fact, name=self.fact, value=mark))

    def _check_unmarked(self, state: Database, engine: MarkedEngine, found: Collection[str]) -> None:
        """Raise WrongEngine if an engine without the mark of this installation can't be the right one."""
        if found and self.is_exclusive:
            raise self._refusal(found)
        source_ids, team_ids = state.read(list_stored)
        if source_ids:
            if not engine.has_any(source_ids, team_ids):
                raise self._refusal(())
        elif self.is_exclusive and engine.has_any((), ()):
            message = (
                f"has data that the database does not know: correct {self.variable} or SVC_STATE_URL, or empty it."
            )
            raise WrongEngine(f"The {self.title} that {self.variable} names {message}", self.engine)
        if found:
            log.warning("the %s is used by another installation too", self.title)

    def _refusal(self, found: Collection[str]) -> WrongEngine:
        if found:
            message = f"belongs to another installation: correct {self.variable} on this node."
        else:
            message = (
                f"lacks the mark of this installation: correct {self.variable} on this node or, if its data was lost,"
                " run `svc-daemon verify --repair`."
            )
        return WrongEngine(f"The {self.title} that {self.variable} names {message}", self.engine)


def make_mark(installation_id: str) -> str:
    return f"{installation_id}_{secrets.token_hex(8)}"


S3_MARK = EngineMark("s3", "S3 store", "SVC_BLOBS_URL", "mark_s3", is_exclusive=True)
#: Several installations can have indexes in one Milvus, as their teams have different ids.
MILVUS_MARK = EngineMark("milvus", "Milvus", "SVC_INDEX_URL", "mark_milvus", is_exclusive=False)
MARK_FACTS = (S3_MARK.fact, MILVUS_MARK.fact)
