"""PostgreSQL by asyncpg: pools, transactions, and what to do when it is away."""
