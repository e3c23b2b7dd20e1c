"""Forces found contact by contact, after Baraff."""
