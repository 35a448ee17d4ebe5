"""Fields of a product: a module for each field, or for related fields."""
