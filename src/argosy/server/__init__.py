"""A Kubernetes API server that knows nothing of federation. `embedded` starts one, `assembly` assembles its parts.

A request comes in by `http` or `local`, passes `app`, `admission` and a verb; `watchcache` stores it and notifies watches.
"""
