"""Jobs in Redis or Valkey: one Lua script per verb, one connection for all of them.

Every key begins with `{namespace}:`, and there is a fixed number of them, so that each script can
declare all that it touches:

    meta                          hash    schema version, the number of the last arrival
    jobs  bodies                  hash    by id: what changes (jobs/job.lua), what rarely does
    results errors logs notes     hash    by id, only where there is one
    entries  entry_order          hash, sorted set   what `note` keeps with a job
    ids                           sorted set   all jobs by id, for listing
    task_keys                     hash    task and key -> id
    due                           sorted set   scheduled jobs by time
    expiry                        sorted set   jobs by when they have to start
    ready reserved waiting places sorted sets   see library/claim/lanes.lua
    lanes  admitted               hash    see library/claim/lanes.lua
    held                          sorted set   running jobs by worker
    cancels                       hash    running jobs that were asked to stop
    finished                      list    when jobs ended and their ids, for pruning
    ended                         sorted set   those that ended otherwise than completed, by id
    queues  counts                hash    paused or not; how many are scheduled and running
    workers worker_names beats    hash    who they are, and their last heartbeat
    leases dead orphans           sorted set   workers by lease, by death, and those who left jobs
    claimants                     hash    which reserved jobs a worker may claim (claim/claim.lua)
    idle                          hash    workers that have nothing to do, and where they hear of it
    records  record_index         hash, sorted set   small administrative records
    signals                       channel for wake-ups and cancels
"""
