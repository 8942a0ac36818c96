"""The virtual robot: `simulate` writes its logs, `rehearse` identifies it before anyone runs the real one."""
