"""Limits of child processes: each child sets them for itself (`children`), and `fork_server` enforces the time."""

from dataclasses import dataclass

from svc_daemon.settings import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CageLimits:
    """The limits of a child process, and of each document that it reads."""

    #: Maximum number of children that run at the same time; further documents wait.
    children: int = 4
    #: Maximum address space in bytes. Malicious files can make parsers allocate gigabytes.
    memory_bytes: int = Limits.extract_memory_bytes
    #: Maximum processor time for one document, in seconds.
    cpu_seconds: int = Limits.extract_cpu_seconds
    #: Maximum time for one document in seconds, from the fork or from the end of the previous document. If it is
    #: exceeded, the child and its descendants are killed.
    wall_seconds: float = Limits.extract_wall_seconds
    #: Maximum size of a file that the child may write; some parsers use temporary files.
    file_bytes: int = 64 * 1024**2
    #: Maximum number of open descriptors.
    descriptors: int = 64
    #: Maximum size of the reply about one document: enough for 25 MB of text in a wider encoding, and its chunks.
    output_bytes: int = 96 * 1024**2
    #: If a child reads several documents and its replies exceed this size, the remaining documents are not read, to
    #: limit the daemon's memory.
    wave_output_bytes: int = 16 * 1024**2
    #: Maximum number of chunks of one document. 25 MB of prose has 30,000 chunks; 25 MB of headings have more.
    chunks: int = 100_000
    #: By how much the child's `nice` value is increased, so that uploads and searches have a higher priority.
    nice: int = 10
    #: Maximum number of members of an archive (DOCX, XLSX, PPTX, EPUB, …).
    archive_entries: int = 2000
    #: Maximum size of all members of an archive together, when expanded.
    archive_bytes: int = 200 * 1024**2
    #: Maximum compression ratio of a member of an archive.
    archive_ratio: int = 200
