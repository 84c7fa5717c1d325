"""Watches folders, and syncs them into their buckets when files change.

observers  receives file system events through watchdog, or polls, and yields hints: which path, and what happened
inotify    a watchdog observer for Linux that reports lost events
settling   decides when a path has settled, and when the next full sync is due (pure functions)
records    files through which a watcher and other processes communicate
engines    runs the syncs of a watcher, and reports to the service
watchers   watches one mapping: turns hints into syncs
loops      runs all watchers of a process in one thread

Theory of operation:
- Events only decide when to compare a path; the comparison with the bucket decides what to do.
- A path that has settled is synced alone, without a walk over the whole folder.
- Doubtful cases cause a full sync: lost events, a replaced folder, a system sleep, a deletion with --prune.
- A full sync every ten minutes makes up for events that were lost without notice.
"""
