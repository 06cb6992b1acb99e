"""What is known of the members, as values: `snapshot` is the fleet that decisions read, made of `facts` and what is available.

Beside it are what goes into it (capacity, health, APIs, declared power and prices), what is reserved in it, and whose
credentials and identity a member has. Nothing here watches or writes.
"""
