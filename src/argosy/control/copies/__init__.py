"""One federated object's copies in members: the input of a pass of dispatch, its requests, and its report.

`item` is the object, `rounds` its clusters in parallel, `operations` one request, `report` the status, `pause` what stops it.
"""
