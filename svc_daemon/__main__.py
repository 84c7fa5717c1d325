"""`python -m svc_daemon`: the same as `svc-daemon`.

`serve` without options skips the command-line parser, which takes 50 ms to load.
"""

import sys

if sys.argv[1:] == ["serve"]:
    try:
        from svc_daemon.command.serve import start

        start()
    except KeyboardInterrupt:
        sys.exit(130)
else:
    from svc_daemon.command.main import main

    main()
