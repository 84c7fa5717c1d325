"""The service's rules, as code without side effects: no I/O, no clock, no randomness, no logging, nothing async.

Every input of a rule is an argument, so that each rule can be read and tested on its own.
"""
