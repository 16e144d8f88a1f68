"""What is looked at before a run: the machine, its engine, endpoints and packages."""
