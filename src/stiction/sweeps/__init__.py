"""One function over many cases, here, on cores or on a cluster, each finished chunk a file."""
