"""Sources and their federated objects, as federate writes them."""
