"""Robots that move by forces: controllers, friction beyond the model, dynid's own engine and MuJoCo."""
