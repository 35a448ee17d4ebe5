"""What a page tells of the product that it sells: a module for each field, or for fields that are told together."""
