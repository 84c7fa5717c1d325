"""`python -m svc_cli` is `svc`."""

from svc_cli.main import main

if __name__ == "__main__":
    main()
