"""Tables of body motion and joint wrenches: six equations a body and instant, rounding is the noise."""
