"""Three hosts on one machine: network namespaces, and slow and lossy lines between them."""
