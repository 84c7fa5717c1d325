"""Watches folders, and syncs them into their buckets when files change.

file_events      converts file system events to hints: relative paths and what happened to them (pure)
settling         decides when a path has settled, that is, has stopped changing (pure)
file_systems     detects file systems that report no changes, and counts folders
observers        receives file system events through watchdog
inotify          a watchdog observer for Linux that reports lost events
schedules        decides when the next full sync is due, and detects that the machine was asleep (pure)
records          the state and log files that a watcher writes for other processes, and requests to it
engines          runs the syncs of a watcher, and reconnects to the service after errors
watchers         watches one mapping: turns hints into syncs
loops            runs all watchers of a process in one thread
stored_mappings  the file of mappings added with `svc watch add`

Theory of operation. Events only decide when to compare files; the comparison decides what to do. A path that has
settled is compared alone, so that saving one file in a folder of 100,000 needs no walk over all of them. Doubtful cases
(lost events, a replaced root, a system sleep, a deletion with --prune) cause a full sync. A full sync every ten minutes
makes up for events that were lost without notice.
"""
