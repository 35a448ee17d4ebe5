"""Fields that items of several kinds have: authors, breadcrumbs, dates, images, amounts of money, titles."""
