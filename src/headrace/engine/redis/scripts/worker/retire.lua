#!lua flags=allow-oom
-- retire: a worker takes leave. One that holds jobs is dead, one that holds none is forgotten.
-- KEYS
-- USES clock workers
-- ARGV 1 offset  2 worker id

local worker = ARGV[2]
if #holds(worker, 1) > 0 then die(worker) else forget(worker) end
return 1
