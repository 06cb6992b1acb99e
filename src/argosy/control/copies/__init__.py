"""One federated object's copies in members: what a pass of dispatch is about, how it is carried out, and what is reported.

`item` is the object, `rounds` its clusters side by side, `operations` one request, `report` the status, `pause` what stops it.
"""
