"""Watch: keeps buckets in step with their folders while files change.

hints        pure: what the file system reports, as paths below the root and what happened to them
settling     pure: when a path has come to rest
places       which file systems report no changes, and how many folders there are
observers    events of the file system, through watchdog
inotify      the same on Linux, where losses are reported
agendas      pure: when the next whole sync is due, and whether the machine was asleep
records      what a watcher leaves for others to read: its state, its log, and requests to it
engines      the syncs of a watcher, whole or of what was touched, over a connection that is renewed
watchers     one mapping, from hint to sync
loops        all watchers of one process
lists        the mappings that were added for good

Theory of operation. Events only decide when to scan; the scan decides what to do. A path that has settled is compared
alone, so that a save in a folder of 100,000 files needs no walk over all of them. Doubtful cases (an overflow, a
replaced root, a long sleep, a deletion with --prune) cause a whole sync. A whole sync every ten minutes makes up for
lost events.
"""
