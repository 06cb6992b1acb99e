"""The judge: sees everything from outside, all requests and all stores, and says which promise was broken.

Each promise is a file here. `line` says what one is.
"""
