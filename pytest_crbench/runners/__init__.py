"""How hidden tests are run in a sandbox, one module per test runner (``pytest`` today)."""
