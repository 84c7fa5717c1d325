"""Watches folders, and syncs them into their buckets when files change.

file_events      converts file system events to hints: which path, and what happened there (pure functions)
settling         decides when a path has settled, that is, stopped changing (pure functions)
file_systems     detects file systems that report no changes, and counts folders
observers        receives file system events through watchdog
inotify          a watchdog observer for Linux that reports lost events
schedules        decides when the next full sync is due (pure functions)
records          files through which a watcher and other processes communicate
engines          runs the syncs of a watcher
watchers         watches one mapping: turns hints into syncs
loops            runs all watchers of a process in one thread
stored_mappings  the mappings added with `svc watch add`

Theory of operation:
- Events only decide when to compare a path; the comparison with the bucket decides what to do.
- A path that has settled is synced alone, without a walk over the whole folder.
- Doubtful cases cause a full sync: lost events, a replaced folder, a system sleep, a deletion with --prune.
- A full sync every ten minutes makes up for events that were lost without notice.
"""
