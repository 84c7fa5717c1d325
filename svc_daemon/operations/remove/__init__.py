"""The ways out: deletions of sources, buckets and teams, and the clean-up behind them.

One word a thing: to *delete* a source takes its rows away in one transaction, so that nothing finds it, and leaves a
*tombstone*. To *detach* a source takes it out of one bucket. A *cascade* is the task that detaches all sources of a
deleted bucket and deletes those that have no other, a *removal* the task that deletes all that a team has. *Sweeping*
then *cleans* tombstones (the bytes and index rows of deleted sources), *forgets* rows that ended long ago, and *purges*
(overwrites) what is left in the files. Stored bytes without a row are *set aside*, and forgotten some days later.
"""
