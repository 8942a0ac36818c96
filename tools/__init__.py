"""Scripts of the project itself: no part of the package."""
