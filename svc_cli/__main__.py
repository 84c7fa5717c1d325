"""Lets `python -m svc_cli` run the same command line as `svc`."""

from svc_cli.main import main

if __name__ == "__main__":
    main()
