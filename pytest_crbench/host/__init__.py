"""The machine: processes, files, trees, disk space, digests."""
