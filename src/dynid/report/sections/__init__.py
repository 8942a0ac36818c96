"""Sections of the report: each a function `Estimate -> Section | None` that answers one question."""
