"""What one document may take of the machine: `children` sets it for its process, `fork_server` ends what overruns."""

from dataclasses import dataclass

from svc_daemon.settings import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CageLimits:
    """Limits of one child and of the document it reads."""

    #: Documents read at the same time; further ones wait.
    children: int = 4
    #: Address space. Parsers of hostile files ask for gigabytes.
    memory_bytes: int = Limits.extract_memory_bytes
    #: Processor time.
    cpu_seconds: int = Limits.extract_cpu_seconds
    #: Time from the fork to the last byte of the answer; then the child and all it started are killed.
    wall_seconds: float = Limits.extract_wall_seconds
    #: Largest file the child may write; parsers keep scratch files.
    file_bytes: int = 64 * 1024**2
    #: Open descriptors.
    descriptors: int = 64
    #: What the child may answer: a file of 25 MB as text in a wider encoding, and its chunks.
    output_bytes: int = 96 * 1024**2
    #: Pieces of one document. 25 MB of prose are 30,000; more come from files made of headings alone.
    chunks: int = 100_000
    #: Steps of politeness towards uploads and searches, which go first.
    nice: int = 10
    #: Members of an archive (DOCX, XLSX, PPTX, EPUB, …).
    archive_entries: int = 2000
    #: All of an archive's members expanded.
    archive_bytes: int = 200 * 1024**2
    #: How many times larger than its packed form a member may be.
    archive_ratio: int = 200
