"""The federation's kinds: typed values, defaults, CRD manifests, names and keys, stock type configs, rights."""
