"""The subcommands of ``crbench``: each module has ``add_parser(subparsers)`` and ``run(args) -> int``."""
