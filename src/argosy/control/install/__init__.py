"""What a control plane needs before the controllers can work: CRDs, rights, stock type configs, and marks on old objects.

Used by `argosy install` and `argosy up`, not by the loops.
"""
