"""Sections of the report: each a function `Estimate -> Section | None` that answers one question.

To add one: a file here, a template in `report/templates`, and one line in SECTIONS of `report/html.py`.
"""
