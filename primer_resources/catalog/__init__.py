"""The catalog: documents, jobs, leases and generations in SQLite or Postgres. Every change of state is one conditional UPDATE."""
