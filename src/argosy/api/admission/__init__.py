"""Admission: what is refused or warned of where it is written, as policies for kube-apiserver and as rules for our own server."""
