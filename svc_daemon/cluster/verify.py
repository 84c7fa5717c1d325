"""`svc-daemon verify` on a cluster: checks and repairs PostgreSQL, S3 and Milvus while the nodes serve requests.

A change in progress can look like damage, so only problems found by two checks in a row are reported. A repair reads
each row again in its own transaction, since a node may have changed it. Afterwards everything is checked again.
"""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from svc_daemon.cluster.engines import open_cluster
from svc_daemon.cluster.migrations import NO_INSTALLATION
from svc_daemon.core.problems import Repair
from svc_daemon.errors import NotFound, StorageError
from svc_daemon.offline.verify import Verdict, repair_in
from svc_daemon.operations.installations import INSTALLATION_ID
from svc_daemon.operations.verifying import Inspection, InstallationFindings, confirmed, verify
from svc_daemon.paths import DataFiles
from svc_daemon.server.engines import choose_engines
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.store.rows.teams import find_fact
from svc_daemon.wire.light.error_codes import ErrorCode

#: Seconds between the two checks. A change in progress during the first check is complete by the second.
PAUSE_S = 2.0


def verify_cluster(
    cluster: ClusterSettings, environ: Mapping[str, str], *, read_data: bool, repair: bool, pause_s: float = PAUSE_S
) -> Verdict:
    """Check the installation, and repair it if requested.

    Raises NotFound if the cluster has no installation, and StorageError or ProviderError if an engine can't be used. If
    all stored bytes are missing, nothing is repaired, and StorageError is raised.
    """
    with TemporaryDirectory(prefix="svc-verify-") as folder:
        files = DataFiles(Path(folder))
        findings = _look(cluster, environ, files, read_data=read_data, pause_s=pause_s)
        if not repair:
            return Verdict(cluster.name, findings, None)
        # If all bytes are missing, the S3 bucket is probably the wrong one.
        if findings.counts["sources"] and not findings.counts["blobs"]:
            raise StorageError(
                f"There are no stored bytes at {cluster.blobs_url}, but {findings.counts['sources']} sources have"
                " theirs there; nothing was repaired. Correct SVC_BLOBS_URL, or restore the bucket."
            )
        unmarked = [problem for problem in findings.problems if problem.repair is Repair.MARK_ENGINE]
        with open_cluster(cluster, environ, files.staging) as engines:
            for mark, on_marks in engines.marks:
                if any(problem.about["engine"] == mark.engine for problem in unmarked):
                    on_marks(partial(mark.renew, engines.state))
        repaired = asyncio.run(repair_in(files, findings.problems, choose_engines(cluster, environ)))
        if repaired:
            findings = _look(cluster, environ, files, read_data=read_data, pause_s=pause_s)
        return Verdict(cluster.name, findings, repaired)


def _look(
    cluster: ClusterSettings, environ: Mapping[str, str], files: DataFiles, *, read_data: bool, pause_s: float
) -> InstallationFindings:
    with open_cluster(cluster, environ, files.staging) as engines:
        is_there = engines.state.read(lambda connection: find_fact(connection, INSTALLATION_ID)) is not None
        if not is_there and not engines.stores.blobs.list_ids():
            raise NotFound(ErrorCode.NOT_FOUND, NO_INSTALLATION)
        unmarked = [on_marks(partial(mark.find_problem, engines.state)) for mark, on_marks in engines.marks]
        inspection = Inspection(state=engines.state, bytes=engines.bytes, index=engines.index, is_shared=True)
        findings = verify(inspection, read_data=read_data)
        if findings.problems:
            time.sleep(pause_s)
            findings = confirmed(findings, verify(inspection, read_data=read_data))
        findings.problems[:0] = filter(None, unmarked)
        return findings
