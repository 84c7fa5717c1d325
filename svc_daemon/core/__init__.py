"""Pure decisions: no I/O, no clock, no randomness, no logging, nothing async.

Whatever a rule needs to know comes in as an argument, so that each rule can be read and tested on its own.
"""
