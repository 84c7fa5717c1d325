"""`python -m svc_daemon`: the same as the script `svc-daemon`."""

from svc_daemon.command import main

main()
