"""What only one kind of robot or data needs, one folder each; the contract is in `dynid/case.py`.

To add one: a folder here, and one line in CASES of `dynid/case.py`.
"""
