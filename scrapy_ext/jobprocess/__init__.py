"""The process of one job: launch, supervision, confinement and end."""
