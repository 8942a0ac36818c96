"""Questions to a finished fit: logs, order of efforts, residuals, scale, ties. Each yields notices."""
