"""The kinds that Kubernetes itself has, as far as anything is special about them. `registry` lists them by group and kind."""
