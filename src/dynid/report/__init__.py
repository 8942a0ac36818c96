"""Results for people and programs: terminal, HTML, JSON, CSV. Computes nothing."""
