"""Makes `python -m svc_cli` run `svc`."""

from svc_cli.main import main

if __name__ == "__main__":
    main()
