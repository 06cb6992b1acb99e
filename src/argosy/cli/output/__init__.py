"""What commands print: tables, progress, reports, errors with a hint, logs."""
