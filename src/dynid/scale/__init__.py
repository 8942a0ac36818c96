"""What sets the scale of efforts: drive gains, a known payload, a weighed robot."""
