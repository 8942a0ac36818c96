"""Figures of the report as plotly.js specifications: plain data, drawn by the reader's browser."""
