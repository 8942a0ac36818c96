"""Forward simulation of robots: controllers, friction beyond the model, dynid's own engine and MuJoCo."""
