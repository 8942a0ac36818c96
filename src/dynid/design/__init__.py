"""What motion to run: `excite` and what it needs."""
