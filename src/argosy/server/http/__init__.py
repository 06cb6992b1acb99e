"""From bytes to requests and back: the listening socket, a connection, one request's values, bodies, and limits on all of it."""
