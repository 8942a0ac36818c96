"""Tables of body motion and joint wrenches: six equations per body and instant; the noise is rounding."""
