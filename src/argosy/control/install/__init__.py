"""What a control plane needs before the controllers can work: CRDs, rights, stock type configs, and the objects it had before.

Used by `argosy install` and `argosy up`, not by the loops.
"""
