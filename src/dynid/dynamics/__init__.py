"""Motion that follows from efforts: accelerations, their exact derivatives, and integration in time."""
