"""What scheduling needs from outside: profiles, plugins behind HTTP and in processes, reservations, priorities.

The decisions themselves are `plan/scheduling`.
"""
