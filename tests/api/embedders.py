"""A model for tests: what it finds alike is written down."""

from collections.abc import Callable, Sequence

from svc_daemon.embed.contract import EmbedFailed
from tests.provider.samples import MODEL, unit

#: Words that mean the same; a text's vector has a number for each, of how many of its words it has.
MEANINGS = (("quay", "pier", "jetty", "harbour"), ("fish", "mullet", "herring"), ("stone", "granite", "brick"))


class WordEmbedder:
    """An Embedder that knows three things. It fails with `failure`, where one is set."""

    model = MODEL
    dimension = len(MEANINGS) + 1

    def __init__(self) -> None:
        self.failure: EmbedFailed | None = None
        #: Called before each query.
        self.on_query: Callable[[], object] = lambda: None

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str, deadline_s: float | None) -> bytes:
        self.on_query()
        return self._vector(text)

    def _vector(self, text: str) -> bytes:
        if self.failure is not None:
            raise self.failure
        words = text.lower().replace(".", " ").split()
        # The last number keeps texts without any of these from having no length.
        return unit(*(sum(word in meaning for word in words) for meaning in MEANINGS), 0.1)
