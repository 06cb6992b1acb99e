"""Why an object runs where it runs (record and summary of a decision), and what a change would do (what if)."""
