"""Followers: what a workload needs goes where it goes. Which objects follow which, and where that places them."""
