"""What only one kind of robot or data needs, one folder each; the contract is in `dynid/case.py`."""
