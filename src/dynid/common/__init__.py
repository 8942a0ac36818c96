"""Shared by all folders: arrays, errors, notices, strict files, threads, compilation."""
