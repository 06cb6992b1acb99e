"""What is known of the members, as values: `snapshot` is the fleet that decisions read, made of `facts` and available amounts.

The other modules are its parts (capacity, health, APIs, declared power and prices), reservations, and the credentials and
identity of members. Nothing here watches or writes.
"""
