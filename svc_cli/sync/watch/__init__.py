"""Watch: keeps buckets equal to their folders while the folders change.

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

Theory of operation. Events are hints that decide when to look; what is done is decided by the scan alone. A path that
has settled is compared by itself, so that a save in a folder of 100,000 files costs no walk over them; whatever is in
doubt (an overflow, a root that was replaced, a long sleep, a deletion where deletions count) costs a whole sync. Events
that were lost are made good by the next whole sync, which comes every ten minutes besides.
"""
