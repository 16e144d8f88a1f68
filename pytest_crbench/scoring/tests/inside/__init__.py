"""Programs that run inside a sandbox: standard library and pytest only, any Python from 3.8 on."""
