"""The command line of svc, and the Python client for other programs.

    main            the entry point; answers `--version` before anything else is imported
    app             the table of commands, each imported when it is called; turns errors into exit codes
    commands/       one module per noun: defines its options, makes the requests, renders the result
    sync/           makes a bucket match a folder, once or whenever files change
    exports/        writes buckets to files, and reads such files
    evals/, mcp/    measure search quality; run the tools of `svc mcp`
    transfer/       selects files, decides what to do with each, and sends them: one run, queue and report for all
    client/         the HTTP client (`from svc_cli.client import Client`)
    daemon/         finds, starts and stops the local daemon, and connects to it or to another service
    render          tables and lines of text
    progress        bars on a terminal, otherwise lines
    console         the two output streams: data on stdout, messages on stderr
    settings        flags, environment, svc.toml (and whether the user trusts it), the user's file and defaults
    credentials     the API keys of `svc auth login`, and which service each is for
    given_files     reads small files that the user names, never endlessly
    private_files   reads and writes the files that only the user may read
    deadlines       the time of `--timeout`, in which everything has to end
    http_responses  reads HTTP responses within limits of time and size
    interrupts      Ctrl-C: the first raises an exception, the second ends the process
    exits, errors   the exit codes, and the errors with their exit codes

A module imports only modules below it in this list.
"""
