"""What all folders use: arrays, errors, notices, strict files, threads, compilation."""
