version: str
log_level: int
kernel_cache_dir: str | None
