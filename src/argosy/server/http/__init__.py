"""From bytes to requests and back: the listening socket, connections, requests, bodies, and limits on all of them."""
