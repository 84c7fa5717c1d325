"""A provider that fails when it is ordered to: what the tests of workers and operations run against."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from svc_daemon.provider.contract import SearchProvider
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from svc_daemon.provider.errors import ProviderError

METHODS = {name for name in vars(SearchProvider) if not name.startswith("_")}


@dataclass(slots=True)
class _Order:
    """A failure that is still to come."""

    error: ProviderError
    #: How many calls it is for.
    left: int
    #: Whether the call takes effect all the same, as when only the answer is lost.
    after_effect: bool


if TYPE_CHECKING:
    # It has every method, found by `__getattr__`.
    _Provider = EmbeddedProvider
else:
    _Provider = object


class FailingProvider(_Provider):
    """A provider whose methods fail where that was ordered: the embedded one, unless the run chose another."""

    #: An option of pytest chooses another way.
    make_whole: ClassVar[Callable[..., SearchProvider]] = EmbeddedProvider

    def __init__(self, *places: Any, **options: Any) -> None:
        self._whole = type(self).make_whole(*places, **options)
        self._lock = threading.Lock()
        self._orders: dict[str, _Order] = {}
        #: How often each method was called.
        self.calls: Counter[str] = Counter()

    def fail(self, method: str, error: ProviderError, *, times: int = 1, after_effect: bool = False) -> None:
        """Let the next `times` calls of this method raise `error`, in place of their effect or after it."""
        if method not in METHODS:
            raise ValueError(f"A provider has no method {method!r}.")
        with self._lock:
            self._orders[method] = _Order(error, times, after_effect)

    def __getattr__(self, name: str) -> Any:
        """Every method of the contract goes through `call`."""
        if name not in METHODS:
            raise AttributeError(name)
        return partial(self.call, name, getattr(self._whole, name))

    def call(self, method: str, work: Callable[..., Any], *values: Any, **named: Any) -> Any:
        """One call: fails on the way in or on the way out, as ordered."""
        with self._lock:
            self.calls[method] += 1
            order = self._orders.get(method)
            if order is not None and order.left:
                order.left -= 1
            else:
                order = None
        if order is not None and not order.after_effect:
            raise order.error
        result = work(*values, **named)
        if order is not None:
            raise order.error
        return result
