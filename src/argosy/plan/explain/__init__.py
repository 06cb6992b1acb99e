"""Why an object runs where it runs (the record of a decision and its summary), and what would follow from a change (what if)."""
