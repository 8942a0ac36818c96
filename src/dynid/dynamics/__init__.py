"""Motion caused by efforts: accelerations, their exact derivatives, and integration in time."""
