"""What ``scrapy platform deploy`` does before it sends something: finds where to, and packs what."""
