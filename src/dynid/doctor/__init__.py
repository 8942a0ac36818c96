"""The log doctor: everything that is doubtful in logs, before their parameters are used.

Logs are read and identified as by `identify`, with refusals recorded instead of raised. All that the steps of
this flow notice becomes one table, together with what each channel is like and what the motion excites.
"""
