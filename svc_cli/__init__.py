"""The command line of svc: what a person types, and the Python client that other programs import.

    main            the one error boundary; answers `--version` before anything is loaded
    app             the table of commands; each is loaded when it is called
    commands/       one module per noun: options, one call, render
    uploads/        which files go up, what is decided about each, and the run that sends them
    client/         the HTTP client (`from svc_cli.client import Client`)
    daemon_process  finds, starts and stops the local daemon
    render          tables and lines for people
    console         the two streams: data on stdout, messages on stderr
    settings        flags, environment, svc.toml, the user's file, defaults
    interrupts      Ctrl-C in two steps
    exits, errors   exit codes and the errors that carry them

Imports go down this list only. From the daemon, only `wire` and `paths` are used.
"""
