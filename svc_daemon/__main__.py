"""`python -m svc_daemon`: the same as the script `svc-daemon`.

`serve` alone, as `svc` and service managers start it, goes without the parser of command lines, which takes 50 ms.
"""

import sys

if sys.argv[1:] == ["serve"]:
    try:
        from svc_daemon.starting import start

        start()
    except KeyboardInterrupt:
        sys.exit(130)
else:
    from svc_daemon.command import main

    main()
