"""A run: settings, folder, inputs and lock file, the parts that it is made of, its reports."""
