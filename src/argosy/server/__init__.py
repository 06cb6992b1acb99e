"""A Kubernetes API server that knows nothing of federation. `embedded` starts one, `assembly` puts it together from its parts.

A request comes in by `http` or `local`, passes `app`, `admission` and a verb, and is stored and told to watches by `watchcache`.
"""
