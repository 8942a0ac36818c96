"""Reader of URDF files."""
