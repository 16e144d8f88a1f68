"""A run: settings, folder, record, the parts that it is made of, its reports."""
